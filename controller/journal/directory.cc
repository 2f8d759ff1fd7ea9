#include "controller/journal/directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace muster::journal {

Result<void> make_private_directory(const std::filesystem::path& dir) {
  if (::mkdir(dir.c_str(), 0700) == 0) {
    return sync_directory(dir.has_parent_path() ? dir.parent_path() : std::filesystem::path("."));
  }
  if (errno != EEXIST)
    return fail_errno(fmt::format("making the journal's directory '{}'", dir.native()), errno);
  struct stat status{};
  if (::stat(dir.c_str(), &status) != 0)
    return fail_errno(fmt::format("checking the journal's directory '{}'", dir.native()), errno);
  if (!S_ISDIR(status.st_mode))
    return fail(
        ErrorCode::Io,
        fmt::format("opening the journal's directory '{}': it is not a directory", dir.native()));
  if ((status.st_mode & 077) != 0 && ::chmod(dir.c_str(), 0700) != 0) {
    return fail_errno(fmt::format("closing the journal's directory '{}' to other users (it must be "
                                  "0700 and its user's own)",
                                  dir.native()),
                      errno);
  }
  return {};
}

Result<void> sync_directory(const std::filesystem::path& dir) {
  const io::UniqueFd descriptor(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor)
    return fail_errno(fmt::format("opening the directory '{}'", dir.native()), errno);
  if (::fsync(descriptor.get()) != 0)
    return fail_errno(fmt::format("syncing the directory '{}'", dir.native()), errno);
  return {};
}

namespace {

// For example " (pid 7)", read from the lock file; empty: the lock file names no pid.
std::string holder_of(const io::UniqueFd& descriptor) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(descriptor.get(), text.data(), text.size(), 0);
  std::string_view holder(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  holder = holder.substr(0, holder.find('\n'));
  return holder.empty() ? std::string() : fmt::format(" (pid {})", holder);
}

}  // namespace

Result<DirectoryLock> DirectoryLock::take(const std::filesystem::path& dir) {
  const std::filesystem::path file = dir / "lock";
  io::UniqueFd descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!descriptor)
    return fail_errno(fmt::format("opening the journal's lock '{}'", file.native()), errno);
  if (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(fmt::format("locking '{}'", file.native()), errno);
    return fail(ErrorCode::Conflict,
                fmt::format("opening the journal in '{}': another controller{} has it open; stop "
                            "that one, or give this one a state directory of its own",
                            dir.native(), holder_of(descriptor)));
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  // The pid is only for people: a failed write is no reason to stop.
  if (::ftruncate(descriptor.get(), 0) != 0 ||
      ::pwrite(descriptor.get(), pid.data(), pid.size(), 0) < 0)
    errno = 0;
  return DirectoryLock(std::move(descriptor));
}

Result<DirectoryLock> DirectoryLock::take_to_read(const std::filesystem::path& dir) {
  const std::filesystem::path file = dir / "lock";
  io::UniqueFd descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor && errno == ENOENT) return DirectoryLock(io::UniqueFd());
  if (!descriptor)
    return fail_errno(fmt::format("opening the journal's lock '{}'", file.native()), errno);
  if (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(fmt::format("locking '{}'", file.native()), errno);
    return fail(
        ErrorCode::Conflict,
        fmt::format("reading the journal in '{}': a controller{} or somebody else who looks into "
                    "it has it open; wait for its end, or read a copy of the directory",
                    dir.native(), holder_of(descriptor)));
  }
  return DirectoryLock(std::move(descriptor));
}

}  // namespace muster::journal
