#include "agent/logs/logs_dir.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <utility>

namespace muster::agent {
namespace {

std::string by_descriptor(int fd) { return fmt::format("/proc/self/fd/{}/", fd); }

}  // namespace

int LogsDir::get() {
  int fd = -1;
  int error = 0;
  {
    const MutexLock lock(mutex_);
    struct stat there{};
    if (!fd_ || ::fstat(fd_.get(), &there) != 0 || there.st_nlink == 0) error = reopen();
    if (error == 0) fd = fd_.get();
  }
  errno = error;
  return fd;
}

// The descriptor keeps its number: other threads may be using it.
int LogsDir::reopen() {
  io::UniqueFd dir(::open(dir_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir) {
    const int error = errno;
    struct stat there{};
    const bool link =
        error == ENOTDIR && ::lstat(dir_.c_str(), &there) == 0 && S_ISLNK(there.st_mode);
    return link ? ELOOP : error;
  }
  if (!fd_) {
    fd_ = std::move(dir);
    return 0;
  }
  return ::dup3(dir.get(), fd_.get(), O_CLOEXEC) < 0 ? errno : 0;
}

io::UniqueFd LogsDir::open(const std::string& name, int access) {
  const int dir = get();
  if (dir < 0) return {};
  return io::UniqueFd(
      ::openat(dir, name.c_str(), access | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

int LogsDir::stat(const std::string& name, struct stat& there) {
  const int dir = get();
  return dir < 0 ? -1 : ::fstatat(dir, name.c_str(), &there, AT_SYMLINK_NOFOLLOW);
}

Result<std::filesystem::path> LogsDir::path_of(const std::string& name) {
  const int dir = get();
  if (dir >= 0) return by_descriptor(dir) + name;
  const int error = errno;
  auto failed = fail_errno(fmt::format("opening '{}'", dir_.string()), error);
  if (error == ENOENT || error == ELOOP) failed.error().code = ErrorCode::NotFound;
  return failed;
}

Error LogsDir::named(Error error) {
  const int dir = get();
  const std::string from = by_descriptor(dir);
  if (const std::size_t at = error.message.find(from); dir >= 0 && at != std::string::npos)
    error.message.replace(at, from.size(), dir_.string() + "/");
  return error;
}

bool is_replaced(const std::filesystem::path& dir) {
  struct stat there{};
  return ::lstat(dir.c_str(), &there) == 0 && !S_ISDIR(there.st_mode);
}

}  // namespace muster::agent
