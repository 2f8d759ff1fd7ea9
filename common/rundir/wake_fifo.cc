#include "common/rundir/wake_fifo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "common/io/beneath.h"

namespace muster::rundir {

std::optional<WakeFifo> WakeFifo::open(const RunLayout& run) {
  const auto dir = io::Beneath::open(run.root());
  io::UniqueFd fd = dir ? dir->open(run.wake_fifo().filename(), O_RDWR) : io::UniqueFd();
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
