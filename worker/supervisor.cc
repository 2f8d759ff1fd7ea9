#include "worker/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/process/identity.h"
#include "worker/limits.h"

namespace muster::worker {
namespace {

using rundir::v1::StopRequested;

constexpr auto kRetryAfter = std::chrono::milliseconds(200);
// A device with a short disturbance (EIO) recovers within this time. A file system that has become
// read-only does not.
constexpr auto kErrorsLast = std::chrono::seconds(5);

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  // INT and HUP are read and ignored: the end of a terminal or of a caller is no order. XFSZ and
  // PIPE: write() returns an error, too.
  for (const int number : {SIGTERM, SIGCHLD, SIGINT, SIGHUP, SIGXFSZ, SIGPIPE})
    ::sigaddset(&set, number);
  return set;
}

int code_of(const siginfo_t& ended) { return ended.si_code == CLD_EXITED ? ended.si_status : -1; }
int signal_of(const siginfo_t& ended) { return ended.si_code == CLD_EXITED ? 0 : ended.si_status; }

}  // namespace

void block_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  const auto set = watched_signals();
  ::sigprocmask(SIG_SETMASK, &set, nullptr);
}

Supervisor::Supervisor(rundir::RunLayout run, BootId boot, EventQueue events, const Clock& clock)
    : run_(std::move(run)),
      boot_(std::move(boot)),
      events_(std::move(events)),
      clock_(clock),
      complaints_(run_) {}

Result<void> Supervisor::run() {
  if (auto opened = open_descriptors(); !opened) return opened;
  if (take_launch()) {
    limits_ = apply_limits(launch_, complaints_);
    join_cgroup();
    events_.reserve(
        static_cast<std::size_t>(launch_.ranks_size() + launch_.auxiliaries_size() + 1));
    if (launch_.has_setup()) {
      start_setup();
    } else {
      start_all();
    }
  }
  loop();
  if (!events_.empty())
    return fail(ErrorCode::Io,
                "supervising '" + run_.root().string() +
                    "': its disk takes no writes; everything is swept, and nothing recorded");
  return {};
}

Result<void> Supervisor::watch(int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return fail_errno("watching a descriptor", errno);
  return {};
}

Result<void> Supervisor::open_descriptors() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  const auto set = watched_signals();
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  timer_.reset(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  null_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!epoll_ || !signals_ || !timer_ || !null_)
    return fail_errno("opening the worker's descriptors", errno);
  if (auto watched = watch(signals_.get()); !watched) return watched;
  return watch(timer_.get());
}

void Supervisor::loop() {
  advance();
  for (;;) {
    flush();
    if (phase_ == Phase::Swept && (events_.empty() || disk_lost_)) return;
    arm_timer();
    std::array<epoll_event, 8> ready{};
    const int count = ::epoll_wait(epoll_.get(), ready.data(), ready.size(), -1);
    if (count < 0 && errno != EINTR) complaints_.say(fail_errno("waiting", errno).error().message);
    bool stop_asked = false;
    for (int i = 0; i < count; ++i) {
      const int fd = ready.at(static_cast<std::size_t>(i)).data.fd;
      if (fd == signals_.get()) read_signals(stop_asked);
      if (fd == timer_.get()) {
        std::uint64_t ticks = 0;
        (void)!::read(timer_.get(), &ticks, sizeof ticks);
      }
    }
    if (reports_) read_reports();
    reap();  // before a stop: the stop has not caused an exit that already exists
    (void)follows();
    if (std::exchange(auxiliary_failed_, false) && ranks_running_ > 0)
      stop(StopRequested::WHY_AUXILIARY_FAILED, false);
    if (stop_asked) stop(StopRequested::WHY_ASKED, false);
    on_time();
    advance();
  }
}

void Supervisor::read_signals(bool& stop_asked) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    stop_asked |= info.ssi_signo == SIGTERM;
}

void Supervisor::reap() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    // A failed start was reported before the exit that it caused, so it is also recorded first.
    if (reports_) read_reports();
    const auto found = processes_.find(info.si_pid);
    const bool ours = found != processes_.end();
    const ProcessOf process = ours ? found->second : ProcessOf{};
    if (ours) {
      processes_.erase(found);
      exited(info.si_pid, process, info);
    } else {
      descendant_ended(info.si_pid, code_of(info), signal_of(info));
    }
    siginfo_t reaped{};
    // from here on another process may have this pid
    ::waitid(P_PID, static_cast<id_t>(info.si_pid), &reaped, WEXITED | WNOHANG);
    if (ours && process.kind == ProcessKind::Setup) setup_ended(code_of(info), signal_of(info));
  }
}

void Supervisor::exited(pid_t pid, const ProcessOf& process, const siginfo_t& info) {
  const int code = code_of(info), signal = signal_of(info);
  if (process.kind == ProcessKind::Rank && goes_on_without_script(code, signal)) return;
  ::kill(-pid, SIGKILL);
  const auto index = static_cast<int>(process.index);
  switch (process.kind) {
    case ProcessKind::Rank: return rank_exited(launch_.ranks(index).rank(), code, signal);
    case ProcessKind::Auxiliary:
      return auxiliary_exited(launch_.auxiliaries(index).name(), code, signal);
    case ProcessKind::Setup: return;  // after it is reaped: then the next processes start
  }
}

void Supervisor::rank_exited(std::uint32_t rank, int code, int signal) {
  const std::optional<std::uint32_t> training_rank = judge_script(code, signal);
  auto& exited = *events_.add().mutable_exited();
  if (training_rank) exited.set_training_rank(*training_rank);
  exited.set_rank(rank);
  exited.set_code(code);
  exited.set_signal(signal);
  exited.set_stop_requested(phase_ != Phase::Running);
  exited.set_oom(oom_killed(signal));
  // Its status is visible only after its memory is freed. A peer that failed because of it may have
  // come first.
  exited.set_killed_unasked(phase_ == Phase::Stopping && signal == SIGKILL && !kill_sent_);
  --ranks_running_;
}

// Processes that ended earlier may not be reaped yet. The ranks are stopped when all existing exits
// are recorded.
void Supervisor::auxiliary_exited(const std::string& name, int code, int signal) {
  auto& exited = *events_.add().mutable_auxiliary_exited();
  exited.set_name(name);
  exited.set_code(code);
  exited.set_signal(signal);
  exited.set_stop_requested(phase_ != Phase::Running);
  (void)oom_killed(signal);
  if (phase_ == Phase::Running && (code != 0 || signal != 0)) auxiliary_failed_ = true;
}

// Counts the kill, so that the kernel does not also count as the killer of the next process.
bool Supervisor::oom_killed(int signal) {
  const bool killed = signal == SIGKILL && count_oom_kills() > oom_kills_;
  if (killed) ++oom_kills_;
  return killed;
}

// A container has a cgroup of its own, which has its memory limit.
std::uint64_t Supervisor::count_oom_kills() const {
  if (cgroup_) return cgroup_->oom_kills();
  return launch_.has_container() ? process::container_oom_kills() : 0;
}

void Supervisor::stop(StopRequested::Why why, bool at_once) {
  if (phase_ != Phase::Running) return;
  phase_ = Phase::Stopping;
  events_.add().mutable_stop_requested()->set_why(why);
  flush();  // before the signals; if the disk is full, the order in the queue keeps the promise
  if (at_once || launch_.stop_grace_ms() <= 0) {
    signal_all(SIGKILL);
    return;
  }
  signal_all(SIGTERM);
  signal_all(SIGCONT);  // a stopped rank can then react, too
  kill_at_ = clock_.now().boot + std::chrono::milliseconds(launch_.stop_grace_ms());
}

void Supervisor::signal_all(int number) {
  kill_sent_ = kill_sent_ || number == SIGKILL;
  for (const auto& [pid, process] : processes_) {
    // There is no group yet: the process has not reached its setsid. The leader is our unreaped
    // child, so no other process has its pid.
    if (::kill(-pid, number) != 0 && errno == ESRCH) ::kill(pid, number);
  }
  signal_descendants(number);
}

void Supervisor::on_time() {
  const auto now = clock_.now().boot;
  if (phase_ == Phase::Running && now >= lease_until_ && !lease_allows())
    stop(StopRequested::WHY_ORPHANED, false);
  if (phase_ == Phase::Running && setup_by_ && now >= *setup_by_) {
    setup_by_.reset();
    setup_timed_out_ = true;
    signal_all(SIGKILL);
  }
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    signal_all(SIGKILL);
  }
  if (retry_at_ && now >= *retry_at_) retry_at_.reset();
  if (name_again_at_ && now >= *name_again_at_) {
    name_again_at_.reset();
    name_descendants();
  }
  if (scan_at_ && now >= *scan_at_) scan_for_ranks(ScriptRanks::kLivesAtLeast);
  if (resweep_at_ && now >= *resweep_at_) resweep_at_.reset();
}

void Supervisor::advance() {
  if (phase_ == Phase::Swept) return;
  if (follows() || !processes_.empty()) return;
  if (reports_) read_reports();  // the end of the pipe may have come together with the last exit
  if (phase_ != Phase::Sweeping) {
    phase_ = Phase::Sweeping;
    for (auto* time : {&kill_at_, &setup_by_}) time->reset();
    const auto own = process::self();
    process::TagUsers users;
    if (launch_.set_user()) users.run = launch_.uid();
    auto leftovers = own ? Leftovers::start(launch_.process_tag(), users,
                                            cgroup_ ? &*cgroup_ : nullptr, own->start_time)
                         : Result<Leftovers>(fail(Error(own.error())));
    if (!leftovers) {
      complaints_.say(leftovers.error().message);
      phase_ = Phase::Stopping;  // again when the timer expires
      resweep_at_ = clock_.now().boot + kRetryAfter;
      return;
    }
    leftovers_.emplace(std::move(*leftovers));
    if (auto watched = watch(leftovers_->fd()); !watched) complaints_.say(watched.error().message);
  }
  if (!resweep_at_) sweep();
}

void Supervisor::sweep() {
  // If nothing ever ran, nothing can be left. (Without a launch record there is no process tag to
  // scan for, either.)
  if (!launch_.process_tag().empty()) {
    auto clean = leftovers_->step();
    if (!clean) {
      complaints_.say("sweeping: " + clean.error().message + "; trying again");
      resweep_at_ = clock_.now().boot + kRetryAfter;
      return;
    }
    if (!*clean) return;
  }
  events_.add().mutable_swept();
  leftovers_.reset();  // its descriptor would stay ready for ever
  phase_ = Phase::Swept;
  if (!launch_.cgroup().empty()) {
    if (auto removed = process::remove_run_group(launch_.cgroup()); !removed)
      complaints_.say(removed.error().message);
  }
}

void Supervisor::flush() {
  if (retry_at_) return;
  if (events_.flush()) {
    failing_since_.reset();
    return;
  }
  if (auto complaint = events_.take_complaint())
    complaints_.say(complaint->message + "; the events wait, trying again");
  retry_at_ = clock_.now().boot + kRetryAfter;
  judge_disk();
}

// The worker waits for a full disk without a limit: space may become free, and healthy ranks
// continue meanwhile.
void Supervisor::judge_disk() {
  const int error = events_.error();
  if (error != EROFS && error != EIO) {
    failing_since_.reset();
    return;
  }
  const BootTime now = clock_.now().boot;
  if (!failing_since_) failing_since_ = now;
  if (disk_lost_ || !events_.end_waits() || (error == EIO && now - *failing_since_ < kErrorsLast))
    return;
  disk_lost_ = true;
  stop(StopRequested::WHY_RANK_FAILED, true);
}

void Supervisor::arm_timer() {
  std::optional<BootTime> next;
  const auto consider = [&next](std::optional<BootTime> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (phase_ == Phase::Running) {
    consider(lease_until_);
    consider(setup_by_);
    consider(scan_at_);
  }
  consider(name_again_at_);
  consider(kill_at_);
  consider(retry_at_);
  consider(resweep_at_);
  itimerspec spec{};
  if (next) {
    const auto ns = std::max<std::int64_t>(next->time_since_epoch().count(), 1);
    spec.it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

}  // namespace muster::worker
