#include "agent/run/state_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string>

#include "common/process/identity.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

// An agent that was killed while it started a process left a copy of its descriptor in that
// process. The process closes it when it executes its program. That is a short time, but on a busy
// machine the next agent may start within it. So try_lock() waits this long for the lock. On
// failure it returns false, and errno says why.
constexpr int kLockWaitMs = 1000;

bool try_lock(int lock, const fs::path& path) {
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) return false;
  const io::UniqueFd news(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (news && ::inotify_add_watch(news.get(), path.c_str(), IN_CLOSE) >= 0 &&
      ::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    pollfd closed{.fd = news.get(), .events = POLLIN, .revents = 0};
    (void)::poll(&closed, 1, kLockWaitMs);
  }
  return ::flock(lock, LOCK_EX | LOCK_NB) == 0;
}

Result<io::UniqueFd> open_lock(const fs::path& path) {
  io::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  // On a disk that has become read-only, the agent must still watch what runs there. A lock needs
  // no write permission.
  if (const int refused = errno; !lock && refused == EROFS) {
    lock.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    errno = refused;
  }
  if (!lock) return fail_errno(fmt::format("opening '{}'", path.string()), errno);
  return lock;
}

bool has_name(int lock, const fs::path& path) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(lock, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

void write_owner(int lock) {
  const std::string text = fmt::format("{}\n", ::getpid());
  // Without it (a full or read-only disk), only a replacement of a dead owner's lock is not
  // possible.
  if (::ftruncate(lock, 0) == 0) (void)!::pwrite(lock, text.data(), text.size(), 0);
}

// 0: unknown.
pid_t owner(int lock) {
  std::array<char, 16> text{};
  pid_t pid = 0;
  if (const ssize_t got = ::pread(lock, text.data(), text.size(), 0); got > 0)
    std::from_chars(text.data(), text.data() + got, pid);
  return pid;
}

// A descriptor's file, without a call that could wait for its disk.
fs::path file_of(const fs::path& descriptor) {
  std::error_code error;
  return fs::read_symlink(descriptor, error);
}

bool has_open(const fs::path& descriptors, const fs::path& file) {
  std::error_code error;
  for (fs::directory_iterator next(descriptors, error), end; !error && next != end;
       next.increment(error)) {
    if (file_of(next->path()) == file) return true;
  }
  return false;
}

// Reports whether the owner was killed, and only threads that hang in the kernel keep its lock. The
// open file shows that the pid is not another process's by now.
bool only_hangs(pid_t pid, int lock) {
  const auto stat = process::read_stat(pid);
  if (!stat || stat->state != 'Z') return false;
  const fs::path file = file_of(fmt::format("/proc/self/fd/{}", lock));
  std::error_code error;
  for (fs::directory_iterator thread(fmt::format("/proc/{}/task", pid), error), end;
       !error && thread != end; thread.increment(error)) {
    if (!file.empty() && has_open(thread->path() / "fd", file)) return true;
  }
  return false;
}

// Removes the name of this lock file. Of several agents that try it at once, none removes the file
// that another one made: they take turns by a lock of the directory.
Result<void> remove_name(int lock, const fs::path& path) {
  const io::UniqueFd turn(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!turn || ::flock(turn.get(), LOCK_EX) != 0 ||
      (has_name(lock, path) && ::unlink(path.c_str()) != 0))
    return fail_errno(fmt::format("replacing '{}', whose owner was killed and hangs in the kernel",
                                  path.string()),
                      errno);
  return {};
}

}  // namespace

Result<io::UniqueFd> take_state_lock(const rundir::AgentLayout& layout) {
  const fs::path path = layout.lock();
  for (;;) {
    auto lock = open_lock(path);
    if (!lock) return lock;
    if (try_lock(lock->get(), path)) {
      if (!has_name(lock->get(), path)) continue;  // another agent replaced it meanwhile
      write_owner(lock->get());
      return lock;
    }
    if (errno != EWOULDBLOCK) return fail_errno(fmt::format("locking '{}'", path.string()), errno);
    const pid_t pid = owner(lock->get());
    if (pid == 0 || !only_hangs(pid, lock->get())) {
      return fail(ErrorCode::Conflict,
                  fmt::format("a second agent on this state directory: '{}' is locked by a running "
                              "agent; stop that one, or give each agent its own --state-dir",
                              path.parent_path().string()));
    }
    if (auto removed = remove_name(lock->get(), path); !removed)
      return fail(std::move(removed).error());
  }
}

}  // namespace muster::agent
