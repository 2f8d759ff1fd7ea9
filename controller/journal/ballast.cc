#include "controller/journal/ballast.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/io/room.h"
#include "common/io/unique_fd.h"

namespace muster::journal {
namespace {

// A start replaces the journal's head; it writes an endpoint file and SQLite's index of the WAL in
// addition. Each log of a new job needs two more inodes.
constexpr std::uint64_t kInodesMark = 256;

}  // namespace

Ballast::Ballast(const std::filesystem::path& dir, std::uint64_t size, std::uint64_t mark)
    : dir_(dir), file_(dir / "ballast"), size_(size), mark_(mark) {}

void Ballast::spend_early(std::uint64_t wanted) {
  const auto room = io::room_at(dir_);
  if (room && room->bytes < wanted) ::unlink(file_.c_str());
}

Result<void> Ballast::restore() {
  if (size_ == 0) {
    ::unlink(file_.c_str());
    return {};
  }
  if (there()) return {};
  const std::string doing =
      fmt::format("making the ballast '{}' ({} MiB)", file_.native(), size_ >> 20);
  struct stat status{};
  const bool whole = ::stat(file_.c_str(), &status) == 0 &&
                     static_cast<std::uint64_t>(status.st_blocks) * 512 >= size_;
  const auto room = io::room_at(dir_);
  if (!room)
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("{}: {}; new jobs are refused until that is known", doing,
                            room.error().message));
  int error = whole || room->bytes >= size_ + mark_ ? 0 : ENOSPC;
  if (error == 0) {
    const io::UniqueFd descriptor(::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!descriptor && errno != ENOSPC) return fail_errno(doing, errno);
    if (!descriptor) error = ENOSPC;
    if (error == 0 && !whole)
      error = ::posix_fallocate(descriptor.get(), 0, static_cast<off_t>(size_));
    // An earlier incarnation may have made a larger file.
    if (error == 0 && ::ftruncate(descriptor.get(), static_cast<off_t>(size_)) != 0) error = errno;
  }
  if (error != 0) {
    ::unlink(file_.c_str());
    if (error != ENOSPC) return fail_errno(doing, error);
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("{}: the disk is nearly full; new jobs are refused until there is room",
                            doing));
  }
  there_.store(true, std::memory_order_relaxed);
  return {};
}

bool Ballast::spend() {
  if (size_ == 0 || !there()) return false;
  there_.store(false, std::memory_order_relaxed);
  return ::unlink(file_.c_str()) == 0;
}

std::string Ballast::shortage() const {
  const auto room = io::room_at(dir_);
  if (!room)
    return "how much room the controller's disk has is unknown (" + room.error().message + ")";
  if (room->inodes < kInodesMark)
    return fmt::format("the controller's disk has {} inodes left ('df -i' shows it)", room->inodes);
  return room->bytes < mark_ + (there() ? 0 : size_) ? "the controller's disk is nearly full"
                                                     : std::string();
}

}  // namespace muster::journal
