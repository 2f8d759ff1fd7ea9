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
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/time.h"
#include "common/process/identity.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

// An agent that was killed while it started a process left a copy of its descriptor in that
// process. The process closes it when it executes its program. That is a short time, but on a busy
// machine the next agent may start within it. So the next agent waits this long for the lock.
constexpr Duration kLockWait = std::chrono::seconds(1);
// More than one is needed only while other agents replace the file.
constexpr int kRoundsMost = 5;

void wait_for_a_close(int lock, const fs::path& path) {
  const io::UniqueFd news(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!news || ::inotify_add_watch(news.get(), path.c_str(), IN_CLOSE) < 0) return;
  const BootTime end = system_clock().now().boot + kLockWait;
  pollfd closed{.fd = news.get(), .events = POLLIN, .revents = 0};
  std::array<char, 4096> events{};
  // The lock that this takes is free again when the caller closes its descriptor and tries anew.
  while (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - system_clock().now().boot);
    if (left.count() <= 0 || ::poll(&closed, 1, static_cast<int>(left.count())) <= 0) return;
    (void)!::read(news.get(), events.data(), events.size());
  }
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
  const auto self = process::self();
  if (!self) return;
  const std::string text = fmt::format("{} {}\n", self->pid, self->start_time);
  // Without it (a full or read-only disk), only a replacement of a dead owner's lock is not
  // possible.
  if (::ftruncate(lock, 0) == 0) (void)!::pwrite(lock, text.data(), text.size(), 0);
}

std::optional<process::ProcessId> owner(int lock) {
  std::array<char, 64> text{};
  const ssize_t got = ::pread(lock, text.data(), text.size(), 0);
  if (got <= 0) return std::nullopt;
  const char* const end = text.data() + got;
  process::ProcessId found;
  const char* const blank = std::from_chars(text.data(), end, found.pid).ptr;
  if (blank == end || *blank != ' ') return std::nullopt;
  const auto [last, error] = std::from_chars(blank + 1, end, found.start_time);
  if (error != std::errc() || last == end || *last != '\n') return std::nullopt;
  return found;
}

// Reports whether the owner was killed, and only threads that hang in the kernel keep its lock.
bool only_hangs(const process::ProcessId& owner) {
  const auto stat = process::read_stat(owner.pid);
  return stat && stat->start_time == owner.start_time && stat->state == 'Z';
}

enum class Taken : std::uint8_t { Yes, No, Again };

// `turn`: the other agents wait meanwhile.
Result<Taken> take(int lock, const fs::path& path, bool turn) {
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) {
    if (!has_name(lock, path)) return Taken::Again;
    write_owner(lock);
    return Taken::Yes;
  }
  if (errno != EWOULDBLOCK) return fail_errno(fmt::format("locking '{}'", path.string()), errno);
  const auto process = turn ? owner(lock) : std::nullopt;
  if (!process || !only_hangs(*process)) return Taken::No;
  if (has_name(lock, path) && ::unlink(path.c_str()) != 0)
    return fail_errno(fmt::format("replacing '{}', whose owner {} was killed and hangs in the "
                                  "kernel",
                                  path.string(), process->pid),
                      errno);
  return Taken::Again;
}

}  // namespace

Result<io::UniqueFd> take_state_lock(const rundir::AgentLayout& layout) {
  const fs::path path = layout.lock();
  bool waited = false;
  for (int round = 0; round < kRoundsMost; ++round) {
    auto lock = open_lock(path);
    if (!lock) return lock;
    {
      const io::UniqueFd turn(
          ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      const bool locked = turn && ::flock(turn.get(), LOCK_EX) == 0;
      const auto taken = take(lock->get(), path, locked);
      if (!taken) return fail(Error(taken.error()));
      if (*taken == Taken::Yes) return lock;
      if (*taken == Taken::Again) continue;
    }
    if (waited) break;
    waited = true;
    wait_for_a_close(lock->get(), path);
  }
  return fail(ErrorCode::Conflict,
              fmt::format("a second agent on this state directory: '{}' is locked by a running "
                          "agent; stop that one, or give each agent its own --state-dir",
                          path.parent_path().string()));
}

}  // namespace muster::agent
