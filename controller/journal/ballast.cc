#include "controller/journal/ballast.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "common/io/unique_fd.h"

namespace muster::journal {

Ballast::Ballast(const std::filesystem::path& dir, std::uint64_t size, std::uint64_t mark) : dir_(dir), file_(dir / "ballast"), size_(size), mark_(mark) {}

Result<void> Ballast::restore() {
  if (there()) return {};
  if (size_ == 0) {
    ::unlink(file_.c_str());
    return {};
  }
  struct stat status{};
  const bool whole = ::stat(file_.c_str(), &status) == 0 && static_cast<std::uint64_t>(status.st_blocks) * 512 >= size_;
  int error = whole || free_bytes() >= size_ + mark_ ? 0 : ENOSPC;
  if (error == 0) {
    const io::UniqueFd descriptor(::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!descriptor) return fail_errno(fmt::format("making the ballast '{}'", file_.native()), errno);
    if (!whole) error = ::posix_fallocate(descriptor.get(), 0, static_cast<off_t>(size_));
    if (error == 0 && ::ftruncate(descriptor.get(), static_cast<off_t>(size_)) != 0) error = errno;  // an earlier life may have kept a larger one
  }
  if (error != 0) {
    ::unlink(file_.c_str());
    if (error != ENOSPC) return fail_errno(fmt::format("making the ballast '{}'", file_.native()), error);
    return fail(ErrorCode::ResourceExhausted, fmt::format("making the ballast '{}' ({} MiB): the disk is nearly full; new jobs are refused until there is room",
                                                          file_.native(), size_ >> 20));
  }
  there_.store(true, std::memory_order_relaxed);
  return {};
}

bool Ballast::spend() {
  if (!there()) return false;
  there_.store(false, std::memory_order_relaxed);
  return ::unlink(file_.c_str()) == 0;
}

bool Ballast::low() const { return (size_ != 0 && !there()) || free_bytes() < mark_; }

std::uint64_t Ballast::free_bytes() const {
  struct statvfs status{};
  if (::statvfs(dir_.c_str(), &status) != 0) return std::numeric_limits<std::uint64_t>::max() / 2;  // unknown: not a reason to refuse anything
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

}  // namespace muster::journal
