#include "common/io/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <iterator>

namespace muster::io {
namespace {

namespace fs = std::filesystem;

constexpr int kPathOnly = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kAgainMost = 16;

// O_PATH allows few other flags.
int with_own_flags(int flags) {
  return flags | O_NOFOLLOW | O_CLOEXEC |
         ((flags & O_PATH) != 0 ? 0 : O_NOCTTY | ((flags & O_DIRECTORY) != 0 ? 0 : O_NONBLOCK));
}

// Both ways refuse the same names. 0: it is good.
int refused(const fs::path& name) {
  if (name.empty() || name.is_absolute()) return EXDEV;
  for (const fs::path& part : name) {
    if (part == "..") return EXDEV;
  }
  return 0;
}

// Of a link, the kernel reports ENOTDIR where a directory is wanted.
int as_link(int error, int dir, const fs::path& part) {
  struct stat there{};
  return error == ENOTDIR && ::fstatat(dir, part.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                 S_ISLNK(there.st_mode)
             ? ELOOP
             : error;
}

// False from the first call on that has shown that there is no openat2.
std::atomic<bool> has_openat2{true};

// -1, and errno. ENOSYS: to be opened by its parts.
int open_by_kernel(int dir, const fs::path& name, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags));
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int tries = 1;; ++tries) {
    const long fd = ::syscall(SYS_openat2, dir, name.c_str(), &how, sizeof how);
    if (fd >= 0) return static_cast<int>(fd);
    // EAGAIN: somebody renames directories at this moment.
    if (errno != EAGAIN || tries == kAgainMost) break;
  }
  return -1;
}

Error wrong_dir(const fs::path& dir, int error) {
  if (error == ELOOP || error == ENOTDIR)
    return {.code = ErrorCode::DataLoss,
            .message = "opening '" + dir.string() +
                       "': " + (error == ELOOP ? "a link is in its place" : "it is no directory")};
  Error failed = fail_errno("opening '" + dir.string() + "'", error).error();
  if (error == ENOENT) failed.code = ErrorCode::NotFound;
  return failed;
}

}  // namespace

UniqueFd open_beneath_by_parts(int dir, const fs::path& name, int flags, unsigned mode) {
  int error = refused(name);
  UniqueFd at;
  int above = dir;
  for (auto part = name.begin(); error == 0 && part != name.end(); ++part) {
    const bool last = std::next(part) == name.end();
    // "a/" has an empty last part
    const fs::path& one = part->empty() ? fs::path(".") : *part;
    UniqueFd next(last ? ::openat(above, one.c_str(), with_own_flags(flags), mode)
                       : ::openat(above, one.c_str(), kPathOnly));
    if (!next) error = as_link(errno, above, one);
    at = std::move(next);
    above = at.get();
  }
  errno = error;
  return at;
}

UniqueFd open_beneath(int dir, const fs::path& name, int flags, unsigned mode) {
  if (const int error = refused(name); error != 0) {
    errno = error;
    return {};
  }
  // One part is opened by one call, and the kernel follows nothing in it.
  if (std::next(name.begin()) == name.end() || !has_openat2.load(std::memory_order_relaxed))
    return open_beneath_by_parts(dir, name, flags, mode);
  UniqueFd fd(open_by_kernel(dir, name, with_own_flags(flags), mode));
  if (fd || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) {
    if (!fd && errno == ENOTDIR) {
      // ELOOP or ENOTDIR, as the other way has it
      return open_beneath_by_parts(dir, name, flags, mode);
    }
    return fd;
  }
  const int refusal = errno;
  fd = open_beneath_by_parts(dir, name, flags, mode);
  // EPERM may also be of the file itself. It is of a filter when the file can be opened.
  if (refusal == ENOSYS || (refusal == EPERM && fd))
    has_openat2.store(false, std::memory_order_relaxed);
  return fd;
}

Result<Beneath> Beneath::open(const fs::path& dir, Links links) {
  UniqueFd fd(::open(dir.c_str(), links == Links::Follow ? kPathOnly & ~O_NOFOLLOW : kPathOnly));
  if (!fd) return fail(wrong_dir(dir, as_link(errno, AT_FDCWD, dir)));
  return Beneath(std::move(fd), dir);
}

Result<Beneath> Beneath::below(const fs::path& name) const {
  UniqueFd fd = open_beneath(fd_.get(), name, O_PATH | O_DIRECTORY);
  if (!fd) return fail(wrong_dir(shown_ / name, errno));
  return Beneath(std::move(fd), shown_ / name);
}

Result<void> Beneath::make_dir(const std::string& name, unsigned mode) const {
  const bool made = ::mkdirat(fd_.get(), name.c_str(), mode) == 0;
  if (!made && errno != EEXIST)
    return fail_errno("making directory '" + (shown_ / name).string() + "'", errno);
  if (!made) {
    struct stat there{};
    if (stat(name, there) == 0 && S_ISDIR(there.st_mode)) return {};
    return fail(wrong_dir(shown_ / name, S_ISLNK(there.st_mode) ? ELOOP : ENOTDIR));
  }
  // An unusual umask may have closed it to this user, too: no descriptor for fchmod(2) then.
  const UniqueFd fd = open(name, kPathOnly);
  if (!fd || ::chmod(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), mode) != 0)
    return fail_errno("setting the mode of '" + (shown_ / name).string() + "'", errno);
  return {};
}

int Beneath::stat(const std::string& name, struct stat& status) const {
  return ::fstatat(fd_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
}

}  // namespace muster::io
