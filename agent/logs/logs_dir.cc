#include "agent/logs/logs_dir.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <utility>

namespace muster::agent {
namespace {

std::string by_descriptor(int fd) { return fmt::format("/proc/self/fd/{}/", fd); }

constexpr int kPathOnly = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// The run directory. It may have been replaced by a link, too.
io::UniqueFd open_run(const std::filesystem::path& logs) {
  return io::UniqueFd(::open(logs.parent_path().c_str(), kPathOnly));
}

bool stat_in(int run, const std::filesystem::path& logs, struct stat& there) {
  return run >= 0 && ::fstatat(run, logs.filename().c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
}

// Of a link the error is ENOTDIR, as of a plain file.
int as_link(int error, int at, const std::filesystem::path& path) {
  struct stat there{};
  return error == ENOTDIR && ::fstatat(at, path.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                 S_ISLNK(there.st_mode)
             ? ELOOP
             : error;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

int LogsDir::get() {
  int fd = -1;
  int error = 0;
  {
    const MutexLock lock(mutex_);
    const io::UniqueFd run = open_run(dir_);
    const int no_run = errno;
    struct stat named{};
    struct stat there{};
    const bool is_dir = stat_in(run.get(), dir_, named) && S_ISDIR(named.st_mode);
    const bool is_open = fd_ && ::fstat(fd_.get(), &there) == 0 && there.st_nlink > 0;
    if (!is_open)
      error = run ? reopen(run.get()) : as_link(no_run, AT_FDCWD, dir_.parent_path());
    else if (is_dir && !is_same(named, there))
      (void)reopen(run.get());  // on an error the old one stays
    if (error == 0) fd = fd_.get();
  }
  errno = error;
  return fd;
}

// The descriptor keeps its number: other threads may be using it.
int LogsDir::reopen(int run) {
  io::UniqueFd dir(::openat(run, dir_.filename().c_str(), kPathOnly));
  if (!dir) return as_link(errno, run, dir_.filename());
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
  const io::UniqueFd run = open_run(dir);
  struct stat there{};
  if (!run) return errno == ENOTDIR || errno == ELOOP;
  return stat_in(run.get(), dir, there) && !S_ISDIR(there.st_mode);
}

}  // namespace muster::agent
