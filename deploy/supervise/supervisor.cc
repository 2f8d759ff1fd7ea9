#include "deploy/supervise/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/exit_codes.h"
#include "common/base/time.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "common/process/identity.h"
#include "common/process/pidfd.h"
#include "common/process/spawn.h"

namespace muster::supervise {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kFirstWait = 500ms;
constexpr auto kLongestWait = 30s;
constexpr auto kRanWell = 60s;     // after that, the next wait is the first one again
constexpr auto kDaemonEnds = 30s;  // after SIGTERM; then SIGKILL
constexpr auto kSupervisorEnds = kDaemonEnds + 15s;
constexpr auto kStarts = 20s;
constexpr std::string_view kCommandFile = "command-line";
constexpr std::size_t kCommandBytesMost = 256 << 10;
constexpr off_t kLogBytesMost = 1 << 20;

struct Running {
  process::ProcessId supervisor, daemon;
};

fs::path state_file(const fs::path& dir) { return dir / "supervisor"; }

// What runs by the file, alive or not. Of another boot: nothing.
Running read_running(const fs::path& dir) {
  Running out;
  const auto text = io::read_file(state_file(dir), 4096);
  const auto boot = process::boot_id();
  if (!text || !boot) return out;
  std::istringstream words(*text);
  std::string of_boot;
  words >> of_boot >> out.supervisor.pid >> out.supervisor.start_time >> out.daemon.pid >>
      out.daemon.start_time;
  return words && of_boot == boot->str() ? out : Running{};
}

Result<void> write_running(const fs::path& dir, const Running& running) {
  const auto boot = process::boot_id();
  if (!boot) return fail(Error(boot.error()));
  return io::replace_file(
      state_file(dir),
      fmt::format("{} {} {} {} {}\n", boot->str(), running.supervisor.pid,
                  running.supervisor.start_time, running.daemon.pid, running.daemon.start_time),
      io::Durable::No);
}

bool wait_readable(int fd, Clock::duration time) {
  const auto until = Clock::now() + time;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd item{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&item, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// As RestartPreventExitStatus of deploy/package/*.service.
bool is_final(int status) { return status == kExitUsage || status == kExitRefused; }

int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

// SIGTERM, then SIGKILL when the time is over.
void end_process(const process::Pidfd& process) {
  (void)process.signal(SIGTERM);
  if (wait_readable(process.fd(), kDaemonEnds)) return;
  (void)process.signal(SIGKILL);
  (void)wait_readable(process.fd(), kDaemonEnds);
}

Result<std::vector<std::string>> read_command(const fs::path& dir) {
  auto text = io::read_file(dir / kCommandFile, kCommandBytesMost);
  if (!text) return fail(std::move(text.error()).in("reading the daemon's command line"));
  std::vector<std::string> words;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) words.push_back(line);
  if (words.empty() || !words.front().starts_with('/'))
    return fail(ErrorCode::DataLoss, fmt::format("reading '{}': its first line is no path of a "
                                                 "program; run 'muster deploy up' again",
                                                 (dir / kCommandFile).string()));
  return words;
}

std::vector<std::string> daemon_environment() {
  std::vector<std::string> env = process::own_environment();
  // The command line has all of its settings.
  std::erase_if(env, [](const std::string& entry) {
    return entry.starts_with("MUSTER_") || entry.starts_with("SSH_") ||
           entry.starts_with("SUDO_") || entry.starts_with("XDG_");
  });
  return env;
}

Result<io::UniqueFd> open_log(const fs::path& dir) {
  const fs::path path = dir / "supervisor.log";
  io::UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (log.get() < 0) return fail_errno(fmt::format("opening '{}'", path.string()), errno);
  struct stat info{};
  if (::fstat(log.get(), &info) == 0 && info.st_size > kLogBytesMost)
    (void)!::ftruncate(log.get(), 0);
  return log;
}

class Supervisor {
 public:
  Supervisor(fs::path dir, process::ProcessId self) : dir_(std::move(dir)), self_(self) {}

  Result<void> run() {
    if (auto locked = lock(); !locked) return locked;
    if (auto ready = catch_signals(); !ready) return ready;
    if (const auto orphan = process::Pidfd::open(read_running(dir_).daemon)) {
      note("a daemon of an earlier supervisor runs; ending it first");
      end_process(*orphan);
    }
    auto pause = Clock::duration(kFirstWait);
    for (bool asked = false; !asked;) {
      const auto began = Clock::now();
      auto ended = run_daemon(asked);
      if (!ended && !ran_once_) return fail(std::move(ended.error()));
      if (asked) break;
      if (final_) {
        note(*ended + "; another start would end so, too: correct it, then start it again");
        break;
      }
      if (Clock::now() - began >= kRanWell) pause = kFirstWait;
      note(fmt::format("{}; starting it again in {} ms", ended ? *ended : ended.error().message,
                       std::chrono::duration_cast<std::chrono::milliseconds>(pause).count()));
      asked = wait_readable(signals_.get(), pause);
      pause = std::min<Clock::duration>(pause * 2, kLongestWait);
    }
    std::error_code ignored;
    fs::remove(state_file(dir_), ignored);
    return {};
  }

 private:
  Result<void> lock() {
    const fs::path path = dir_ / "lock";
    lock_ = io::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (lock_.get() < 0) return fail_errno(fmt::format("opening '{}'", path.string()), errno);
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
    return fail(ErrorCode::Conflict,
                fmt::format("supervising '{}': another supervisor runs there", dir_.string()));
  }

  Result<void> catch_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = io::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
    if (signals_.get() < 0) return fail_errno("waiting for signals", errno);
    return {};
  }

  // Returns how the daemon ended. `asked`: because the supervisor is to end.
  Result<std::string> run_daemon(bool& asked) {
    auto words = read_command(dir_);
    if (!words) return fail(std::move(words.error()));
    auto log = open_log(dir_);
    if (!log) return fail(std::move(log.error()));
    process::SpawnRequest request{.path = words->front(),
                                  .argv = *words,
                                  .env = daemon_environment(),
                                  .cwd = "/",
                                  .out_fd = log->get(),
                                  .new_session = true};
    const auto pid = process::spawn(request);
    if (!pid) return fail(Error(pid.error()));
    const auto daemon = process::Pidfd::open_child(*pid);
    if (!daemon) return fail(Error(daemon.error()));
    auto noted = note_running(*pid);
    if (!noted && !ran_once_) {  // nobody could find the daemon, to stop it
      end_process(*daemon);
      reap(*pid);
      return fail(std::move(noted.error()));
    }
    // The file of the first run names this supervisor, and it stops the daemon: as where a disk is
    // full for a while, the daemon goes on.
    if (!noted) note(noted.error().message + "; trying again");
    ran_once_ = true;
    pollfd items[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                      {.fd = daemon->fd(), .events = POLLIN, .revents = 0}};
    constexpr int kNoteEveryMs = 1000;
    for (;;) {
      const int ready = ::poll(items, 2, noted ? -1 : kNoteEveryMs);
      if (ready > 0) break;
      if (ready == 0) noted = note_running(*pid);
    }
    if (items[1].revents == 0) {
      asked = true;
      end_process(*daemon);
    }
    const int status = reap(*pid);
    final_ = WIFEXITED(status) && is_final(WEXITSTATUS(status));
    return WIFSIGNALED(status)
               ? fmt::format("the daemon was ended by signal {}", WTERMSIG(status))
               : fmt::format("the daemon ended with status {}", WEXITSTATUS(status));
  }

  [[nodiscard]] Result<void> note_running(pid_t pid) const {
    constexpr std::string_view kDoing = "noting which process the daemon is";
    const auto id = process::identify(pid);
    if (!id) return fail(Error(id.error()).in(kDoing));
    auto written = write_running(dir_, {.supervisor = self_, .daemon = *id});
    if (!written) return fail(std::move(written.error()).in(kDoing));
    return {};
  }

  void note(const std::string& text) const {
    const auto log = open_log(dir_);
    if (!log) return;
    std::size_t written = 0;
    (void)io::write_all(log->get(),
                        fmt::format("{} {}\n", utc_text(system_clock().now().wall), text), written);
  }

  fs::path dir_;
  process::ProcessId self_;
  io::UniqueFd lock_, signals_;
  bool ran_once_ = false;
  bool final_ = false;  // of the daemon's last end
};

}  // namespace

Result<void> stop(const fs::path& dir) {
  const Running running = read_running(dir);
  if (const auto supervisor = process::Pidfd::open(running.supervisor)) {
    (void)supervisor->signal(SIGTERM);
    if (!wait_readable(supervisor->fd(), kSupervisorEnds))
      return fail(ErrorCode::TimedOut,
                  fmt::format("ending the daemon of '{}': its supervisor {} does not end",
                              dir.string(), running.supervisor.pid));
  }
  if (const auto daemon = process::Pidfd::open(running.daemon)) end_process(*daemon);
  if (process::alive(running.daemon))
    return fail(ErrorCode::TimedOut, fmt::format("ending the daemon of '{}': {} does not end",
                                                 dir.string(), running.daemon.pid));
  std::error_code ignored;
  fs::remove(state_file(dir), ignored);
  return {};
}

Result<void> start(const fs::path& dir) {
  if (auto stopped = stop(dir); !stopped) return stopped;
  if (auto words = read_command(dir); !words) return fail(std::move(words.error()));
  auto log = open_log(dir);
  if (!log) return fail(std::move(log.error()));
  process::SpawnRequest request{.path = "/proc/self/exe",
                                .argv = {"muster", "deploy", "supervise", "run", dir.string()},
                                .env = daemon_environment(),
                                .cwd = "/",
                                .out_fd = log->get(),
                                .new_session = true};
  const auto pid = process::spawn(request);
  if (!pid) return fail(Error(pid.error()).in("starting the supervisor"));
  const auto child = process::Pidfd::open_child(*pid);
  if (!child) return fail(Error(child.error()));
  constexpr auto kStep = 20ms;
  for (const auto until = Clock::now() + kStarts; Clock::now() < until;) {
    if (wait_readable(child->fd(), kStep)) break;
    const Running running = read_running(dir);
    if (running.supervisor.pid == *pid) return {};
  }
  std::string text = io::read_file(dir / "supervisor.log", 2 << 20).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return fail(ErrorCode::Io, fmt::format("starting the daemon of '{}': {}", dir.string(),
                                         text.substr(text.rfind('\n') + 1)));
}

Result<void> run(const fs::path& dir) {
  const auto self = process::self();
  if (!self) return fail(Error(self.error()));
  return Supervisor(dir, *self).run();
}

}  // namespace muster::supervise
