#include "common/rundir/wake_fifo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace muster::rundir {

std::optional<WakeFifo> WakeFifo::open(const RunLayout& run) {
  io::UniqueFd fd(::open(run.wake_fifo().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISFIFO(info.st_mode)) return std::nullopt;
  return WakeFifo(std::move(fd));
}

void WakeFifo::ring() const { (void)!::write(fd_.get(), "", 1); }

void WakeFifo::drain() const {
  std::array<char, 4096> rings;
  while (::read(fd_.get(), rings.data(), rings.size()) > 0) {
  }
}

}  // namespace muster::rundir
