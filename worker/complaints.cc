#include "worker/complaints.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>
#include <string>

#include "common/io/beneath.h"
#include "common/io/file.h"

namespace muster::worker {

Complaints::Complaints(const rundir::RunLayout& run)
    : run_dir_(::open(run.root().c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
      name_(run.worker_log().lexically_relative(run.root())) {}

void Complaints::say(std::string_view text) {
  const io::UniqueFd fd =
      io::open_beneath(run_dir_.get(), name_, O_WRONLY | O_CREAT | O_APPEND, 0600);
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
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
