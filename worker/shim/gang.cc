#include "worker/shim/gang.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "common/io/unique_fd.h"

namespace muster::shim {
namespace {

// time limit for processes that were killed with their rank
constexpr auto kOrphansMost = std::chrono::seconds(10);
constexpr std::size_t kLineMost = 64 << 10;  // a longer line is passed on in parts

// Writes all bytes, even if another process made the descriptor non-blocking. Returns false if no
// process reads it any more.
bool write_out(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
      (void)::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// Where the lines of ranks go in addition to their logs.
struct Outlet {
  int fd = -1;
  int copy = -1;  // the node's log, if fd is another file
  bool open = true;
  void pass(std::string_view bytes) {
    if (open) open = write_out(fd, bytes);
    if (copy >= 0) (void)write_out(copy, bytes);
  }
};

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// A pipe usually leads to the node's log (`| tee`); another file does not, nor does /dev/null.
bool leads_elsewhere(int fd, const struct stat& node_log) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return true;
  return (S_ISREG(info.st_mode) || S_ISCHR(info.st_mode)) && !same_file(info, node_log);
}

struct Stream {
  io::UniqueFd fd;
  Outlet* outlet = nullptr;
  int log = -1;
  std::string pending;  // of an unfinished line

  void flush(std::size_t bytes) {
    outlet->pass(std::string_view(pending).substr(0, bytes));
    pending.erase(0, bytes);
  }
  // Returns false at the end of the stream, or if nothing can be read now.
  bool take() {
    std::array<char, 32 << 10> room{};
    const ssize_t count = ::read(fd.get(), room.data(), room.size());
    if (count < 0 && errno == EINTR) return true;
    if (count < 0) return false;
    if (count == 0) {
      finish();
      return false;
    }
    const std::string_view bytes(room.data(), static_cast<std::size_t>(count));
    if (log >= 0) (void)write_out(log, bytes);
    pending.append(bytes);
    if (const std::size_t end = pending.find_last_of("\n\r"); end != std::string::npos)
      flush(end + 1);
    if (pending.size() > kLineMost) flush(pending.size());
    return true;
  }
  void finish() {
    if (!pending.empty()) flush(pending.size());
    fd.reset();
  }
};

struct Child {
  const Process* process = nullptr;
  pid_t pid = 0;  // 0: it has ended
  io::UniqueFd log;
  Stream out, err;
};

void make_link(const Process& process) {
  if (process.link.empty()) return;
  std::error_code ignored;  // the link is a convenience: errors are ignored
  std::filesystem::create_directories(std::filesystem::path(process.link).parent_path(), ignored);
  struct stat there{};
  if (::lstat(process.link.c_str(), &there) == 0 && S_ISLNK(there.st_mode))
    (void)::unlink(process.link.c_str());
  (void)!::symlink(process.log.c_str(), process.link.c_str());
}

[[noreturn]] void become(const Process& process, pid_t parent, int out, int err,
                         const sigset_t& signals) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(127);
  std::vector<std::string> variables;
  for (const auto& [name, value] : process.environment) variables.push_back(name + "=" + value);
  std::vector<char*> argv, environment;
  for (const std::string& word : process.argv) argv.push_back(const_cast<char*>(word.c_str()));
  for (std::string& variable : variables) environment.push_back(variable.data());
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::environ = environment.data();  // execvp searches this PATH
  ::execvp(argv.front(), argv.data());
  const int error = errno;
  std::fprintf(stderr, "starting %s: executing '%s': %s\n", process.name.c_str(), argv.front(),
               std::strerror(error));
  ::_exit(error == ENOENT ? 127 : 126);
}

// The kernel does not report the order of ends that are seen together. A fault of another rank
// makes a rank exit or abort, but never die of these signals.
bool dies_first(int signal) {
  return signal == SIGKILL || signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
         signal == SIGFPE;
}

class Gang {
 public:
  Gang(const std::vector<Process>& processes, const GangOptions& options)
      : processes_(processes), options_(options) {}

  Result<Ended> run() {
    if (auto opened = open(); !opened) return fail(std::move(opened.error()));
    for (const Process& process : processes_) {
      if (auto started = start(process); !started) {
        say("muster: " + options_.launcher + ": " + started.error().message);
        decide({.name = process.name, .code = 126});
        break;
      }
    }
    loop();
    await_orphans();
    for (const auto& child : children_) {  // the rest of the pipes
      while (child->out.fd && child->out.take()) {
      }
      while (child->err.fd && child->err.take()) {
      }
      child->out.finish();
      child->err.finish();
    }
    return ended_;
  }

 private:
  Result<void> open() {
    ::sigset_t watched;
    ::sigemptyset(&watched);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT})
      ::sigaddset(&watched, number);
    ::sigprocmask(SIG_BLOCK, &watched, &before_);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGCHLD, SIG_DFL);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!epoll_ || !signals_ || !timer_)
      return fail_errno("opening the launcher's descriptors", errno);
    open_node_log();
    watch(signals_.get(), nullptr);
    watch(timer_.get(), nullptr);
    return {};
  }

  void open_node_log() {
    struct stat info{};
    if (options_.node_log.empty() || ::stat(options_.node_log.c_str(), &info) != 0) return;
    node_log_.reset(::open(options_.node_log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!node_log_) return;
    if (leads_elsewhere(1, info)) out_.copy = node_log_.get();
    if (leads_elsewhere(2, info)) err_.copy = node_log_.get();
  }

  void watch(int fd, Stream* stream) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = stream}};
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  Result<void> start(const Process& process) {
    std::array<int, 2> out{-1, -1}, err{-1, -1};
    if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) {
      const int error = errno;
      for (const int fd : out) (void)::close(fd);
      return fail_errno("starting " + process.name + ": making a pipe", error);
    }
    const io::UniqueFd out_end(out[1]), err_end(err[1]);
    auto child = std::make_unique<Child>();
    child->process = &process;
    child->out.fd.reset(out[0]);
    child->err.fd.reset(err[0]);
    child->log.reset(::open(process.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!child->log)
      say("muster: " + options_.launcher + ": " +
          fail_errno("opening log '" + process.log + "'", errno).error().message +
          "; going on without it");
    make_link(process);
    const pid_t parent = ::getpid(), pid = ::fork();
    if (pid < 0) return fail_errno("starting " + process.name + ": forking", errno);
    if (pid == 0) become(process, parent, out[1], err[1], before_);
    ::setpgid(pid, pid);  // here and in the child: the first one wins
    child->pid = pid;
    for (Stream* stream : {&child->out, &child->err}) {
      ::fcntl(stream->fd.get(), F_SETFL, O_NONBLOCK);
      stream->log = child->log.get();
      stream->outlet = stream == &child->out ? &out_ : &err_;
      watch(stream->fd.get(), stream);
    }
    if (process.rank) ++ranks_running_;
    ++running_;
    children_.push_back(std::move(child));
    return {};
  }

  void loop() {
    while (running_ > 0) {
      std::array<epoll_event, 64> ready{};
      const int count = ::epoll_wait(epoll_.get(), ready.data(), ready.size(), -1);
      for (int i = 0; i < count; ++i) {
        auto* stream = static_cast<Stream*>(ready.at(static_cast<std::size_t>(i)).data.ptr);
        if (stream != nullptr && stream->fd) stream->take();
      }
      read_signals();
      std::uint64_t ticks = 0;
      if (::read(timer_.get(), &ticks, sizeof ticks) == static_cast<ssize_t>(sizeof ticks))
        signal_all(SIGKILL);
      reap();
    }
  }

  void read_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) continue;
      if (ended_.name.empty())
        ended_ = {.name = "the launch", .code = -1, .signal = number, .stopped = true};
      // a stop arrives at the group, and again when the shell in the group ends
      if (passed_on_.insert(number).second) signal_all(number);
      arm();
    }
  }

  void reap() {
    std::optional<Ended> bad;
    for (const auto& child : children_) {
      siginfo_t info{};
      if (child->pid == 0 ||
          ::waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == 0)
        continue;
      ::kill(-child->pid, SIGKILL);
      (void)::waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOHANG);
      groups_.insert(child->pid);
      child->pid = 0;
      --running_;
      if (child->process->rank) --ranks_running_;
      const int code = info.si_code == CLD_EXITED ? info.si_status : -1,
                signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
      const bool late_scheduler = !child->process->rank && ranks_running_ == 0;
      if ((code == 0 && signal == 0) || late_scheduler) continue;
      if (!bad || (dies_first(signal) && !dies_first(bad->signal)))
        bad = {.name = child->process->name, .code = code, .signal = signal};
    }
    if (bad) decide(std::move(*bad));
    if (ranks_running_ == 0 && running_ > 0) arm();  // the scheduler ends by itself, or is ended
    reap_orphans();
  }

  // Reaps processes that a rank left (DataLoader workers, a resource tracker) and that were killed
  // with its group. The process that adopts the shim's orphans must not judge by their ends.
  void reap_orphans() {
    for (;;) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
      const auto own = [&info](const auto& child) { return child->pid == info.si_pid; };
      if (std::ranges::any_of(children_, own)) return;  // in the next turn
      siginfo_t reaped{};
      (void)::waitid(P_PID, static_cast<id_t>(info.si_pid), &reaped, WEXITED | WNOHANG);
    }
  }

  [[nodiscard]] bool awaits_orphans() {
    std::erase_if(groups_, [](pid_t group) {
      siginfo_t info{};
      return ::waitid(P_PGID, static_cast<id_t>(group), &info, WEXITED | WNOHANG | WNOWAIT) != 0 &&
             errno == ECHILD;
    });
    return !groups_.empty();
  }

  void await_orphans() {
    const auto end = std::chrono::steady_clock::now() + kOrphansMost;
    for (reap_orphans(); awaits_orphans(); reap_orphans()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                            end - std::chrono::steady_clock::now())
                            .count();
      if (left <= 0) return;
      pollfd wait{.fd = signals_.get(), .events = POLLIN, .revents = 0};
      (void)::poll(&wait, 1, static_cast<int>(left));
      signalfd_siginfo info{};
      while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      }
    }
  }

  // Takes the first bad end. Later ones are its consequences.
  void decide(Ended ended) {
    if (!ended_.name.empty()) return;
    ended_ = std::move(ended);
    if (running_ == 0) return;
    signal_all(SIGTERM);
    arm();
  }

  void signal_all(int number) {
    for (const auto& child : children_) {
      if (child->pid != 0) ::kill(-child->pid, number);
    }
  }

  void arm() {
    if (armed_) return;
    armed_ = true;
    const std::int64_t ms = std::max<std::int64_t>(options_.grace_ms, 1);
    const itimerspec spec{.it_interval = {},
                          .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000}};
    ::timerfd_settime(timer_.get(), 0, &spec, nullptr);
  }

  void say(const std::string& line) { err_.pass(line + "\n"); }

  const std::vector<Process>& processes_;
  const GangOptions& options_;
  sigset_t before_{};
  io::UniqueFd epoll_, signals_, timer_, node_log_;
  Outlet out_{.fd = 1}, err_{.fd = 2};
  std::vector<std::unique_ptr<Child>> children_;
  std::size_t running_ = 0, ranks_running_ = 0;
  bool armed_ = false;
  std::set<int> passed_on_;  // signals
  std::set<pid_t> groups_;   // of ranks that have ended
  Ended ended_;
};

}  // namespace

Result<Ended> run_gang(const std::vector<Process>& processes, const GangOptions& options) {
  return Gang(processes, options).run();
}

}  // namespace muster::shim
