#include "worker/complaints.h"

#include <fcntl.h>

#include <ctime>
#include <string>

#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "common/rundir/run_file.h"

namespace muster::worker {

void Complaints::say(std::string_view text) {
  const io::UniqueFd fd = rundir::open_file(path_, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (!fd) return;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  ::gmtime_r(&now.tv_sec, &utc);
  char stamp[40];
  const auto length = std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ ", &utc);
  std::size_t written = 0;
  (void)io::write_all(fd.get(), std::string(stamp, length) + std::string(text) + "\n", written);
}

}  // namespace muster::worker
