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

#include "common/process/identity.h"
#include "worker/limits.h"

namespace muster::worker {
namespace {

using rundir::v1::StopRequested;

constexpr auto kRetryAfter = std::chrono::milliseconds(200);

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  // INT and HUP are read and ignored: a terminal or a caller that goes is no order. XFSZ and PIPE: write() says it, too.
  for (const int number : {SIGTERM, SIGCHLD, SIGINT, SIGHUP, SIGXFSZ, SIGPIPE}) ::sigaddset(&set, number);
  return set;
}

}  // namespace

void block_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  const auto set = watched_signals();
  ::sigprocmask(SIG_SETMASK, &set, nullptr);
}

Supervisor::Supervisor(rundir::RunLayout run, BootId boot, EventQueue events, const Clock& clock)
    : run_(std::move(run)), boot_(std::move(boot)), events_(std::move(events)), clock_(clock), complaints_(run_.worker_log()) {}

Result<void> Supervisor::run() {
  if (auto opened = open_descriptors(); !opened) return opened;
  if (take_launch()) {
    limits_ = apply_limits(launch_, complaints_);
    join_cgroup();
    start_ranks();
  }
  loop();
  return {};
}

Result<void> Supervisor::watch(int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return fail_errno("watching a descriptor", errno);
  return {};
}

Result<void> Supervisor::open_descriptors() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  const auto set = watched_signals();
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  timer_.reset(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  null_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!epoll_ || !signals_ || !timer_ || !null_) return fail_errno("opening the worker's descriptors", errno);
  if (auto watched = watch(signals_.get()); !watched) return watched;
  return watch(timer_.get());
}

bool Supervisor::take_launch() {
  auto launch = rundir::read_launch(run_);
  if (!launch) {
    refuse(0, 0, launch.error().message);
  } else if (!*launch) {
    refuse(0, ENOENT, "reading '" + run_.launch().string() + "': it is not there");
  } else if ((*launch)->boot_id() != boot_.str()) {
    refuse(
        0, 0,
        "starting attempt " + std::to_string((*launch)->attempt()) + ": it was to run on boot '" + (*launch)->boot_id() + "', this is '" + boot_.str() + "'");
  } else if ((*launch)->ranks_size() == 0 || (*launch)->cookie().empty()) {
    refuse(0, EINVAL, "starting attempt " + std::to_string((*launch)->attempt()) + ": its launch record has no ranks or no cookie");
  } else {
    launch_ = std::move(**launch);
    if (lease_allows()) return true;
    stop(StopRequested::WHY_ORPHANED, true);
  }
  return false;
}

// Unreadable is gone: past the grace somebody else may run the next attempt, so doubt ends this one.
bool Supervisor::lease_allows() {
  const auto lease = rundir::read_lease(run_);
  if (!lease) {
    complaints_.say(lease.error().message);
    return false;
  }
  if (!*lease) {
    complaints_.say("reading '" + run_.lease().string() + "': it is not there; the agent removed it or never made it");
    return false;
  }
  const auto until = rundir::lease_end(**lease, boot_);
  if (!until || *until <= clock_.now().boot) return false;
  lease_until_ = *until;
  return true;
}

void Supervisor::join_cgroup() {
  if (launch_.cgroup().empty()) return;
  auto cgroup = process::Cgroup::make(launch_.cgroup());
  if (!cgroup) {
    complaints_.say(cgroup.error().message + "; going on without it: what ranks leave behind is found by its environment");
    return;
  }
  cgroup_.emplace(std::move(*cgroup));
  oom_kills_ = cgroup_->oom_kills();
}

void Supervisor::start_ranks() {
  events_.reserve(static_cast<std::size_t>(launch_.ranks_size()));
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return refuse(launch_.ranks(0).rank(), errno, fail_errno("making a pipe", errno).error().message);
  reports_.reset(pipe[0]);
  const io::UniqueFd write_end(pipe[1]);
  ::fcntl(reports_.get(), F_SETFL, O_NONBLOCK);

  const StartContext context{.launch = &launch_,
                             .cookie = std::string(rundir::kCookieVariable) + "=" + launch_.cookie(),
                             .worker = ::getpid(),
                             .null_fd = null_.get(),
                             .report_fd = write_end.get(),
                             .nofile = limits_.nofile,
                             .cgroup_dir_fd = cgroup_ ? cgroup_->dir_fd() : -1,
                             .cgroup_procs_fd = cgroup_ ? cgroup_->procs_fd() : -1};
  std::optional<std::pair<std::uint32_t, Error>> failure;
  for (int index = 0; index < launch_.ranks_size() && !failure; ++index) {
    const auto number = launch_.ranks(index).rank();
    auto pid = start_rank(context, static_cast<std::uint32_t>(index));
    if (!pid) {
      failure.emplace(number, std::move(pid.error()));
      continue;
    }
    ranks_.emplace(*pid, Rank{.number = number});
    ++running_;
  }
  for (const auto& [pid, rank] : ranks_) {
    auto& started = *events_.add().mutable_rank_started();
    started.set_rank(rank.number);
    started.set_pid(static_cast<std::uint64_t>(pid));
    // An unreaped child's stat can always be read.
    if (const auto identity = process::identify(pid)) started.set_start_time(identity->start_time);
  }
  flush();
  if (auto watched = watch(reports_.get()); !watched) complaints_.say(watched.error().message);
  if (failure) refuse(failure->first, EAGAIN, failure->second.message);
  if (cgroup_ && cgroup_->gone()) {
    complaints_.say("starting in cgroup '" + launch_.cgroup() +
                    "': it was removed meanwhile; going on without it: what ranks leave behind is found by its environment");
    cgroup_.reset();
  }
}

void Supervisor::loop() {
  advance();
  for (;;) {
    flush();
    if (phase_ == Phase::Swept && events_.empty()) return;
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
    reap();  // before the stop: an exit that is already there is not the stop's doing
    if (stop_asked) stop(StopRequested::WHY_ASKED, false);
    on_time();
    advance();
  }
}

void Supervisor::read_reports() {
  for (;;) {
    StartReport report;
    const ssize_t count = ::read(reports_.get(), &report, sizeof report);
    if (count == static_cast<ssize_t>(sizeof report)) {
      refuse(launch_.ranks(static_cast<int>(report.index)).rank(), report.error, describe(report, launch_));
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // The end: nobody stands between fork and exec any more.
    reports_.reset();
    if (!start_failed_) events_.add().mutable_started();
    return;
  }
}

void Supervisor::read_signals(bool& stop_asked) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) stop_asked |= info.ssi_signo == SIGTERM;
}

void Supervisor::reap() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (reports_) read_reports();  // a failed start was told before the exit that it led to: it is recorded before it, too
    const auto rank = ranks_.find(info.si_pid);
    if (rank != ranks_.end() && rank->second.running) exited(info.si_pid, rank->second);
    siginfo_t reaped{};
    ::waitid(P_PID, static_cast<id_t>(info.si_pid), &reaped, WEXITED | WNOHANG);
    if (rank != ranks_.end() && !rank->second.running) ranks_.erase(rank);  // the number may be anybody's from here on
  }
}

void Supervisor::exited(pid_t pid, Rank& rank) {
  ::kill(-pid, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  auto& exited = *events_.add().mutable_exited();
  exited.set_rank(rank.number);
  exited.set_code(info.si_code == CLD_EXITED ? info.si_status : -1);
  exited.set_signal(info.si_code == CLD_EXITED ? 0 : info.si_status);
  exited.set_stop_requested(phase_ != Phase::Running);
  if (cgroup_) {
    const auto oom_kills = cgroup_->oom_kills();
    exited.set_oom(exited.signal() == SIGKILL && oom_kills > oom_kills_);
    if (exited.oom()) ++oom_kills_;
  }
  rank.running = false;
  --running_;
}

void Supervisor::refuse(std::uint32_t rank, int error, std::string text) {
  if (!start_failed_) {  // the first one speaks for the start
    auto& failed = *events_.add().mutable_start_failed();
    failed.set_rank(rank);
    failed.set_error(error);
    failed.set_text(std::move(text));
  }
  start_failed_ = true;
  stop(StopRequested::WHY_START_FAILED, true);
}

void Supervisor::stop(StopRequested::Why why, bool at_once) {
  if (phase_ != Phase::Running) return;
  phase_ = Phase::Stopping;
  events_.add().mutable_stop_requested()->set_why(why);
  flush();  // before the signals; when the disk is full the order in the queue keeps the promise
  if (at_once || launch_.stop_grace_ms() <= 0) {
    signal_ranks(SIGKILL);
    return;
  }
  signal_ranks(SIGTERM);
  signal_ranks(SIGCONT);  // a stopped rank gets its chance, too
  kill_at_ = clock_.now().boot + std::chrono::milliseconds(launch_.stop_grace_ms());
}

void Supervisor::signal_ranks(int number) {
  for (const auto& [pid, rank] : ranks_) {
    // No group yet: it has not come as far as its setsid. The leader is our unreaped child, so the number is its own.
    if (rank.running && ::kill(-pid, number) != 0 && errno == ESRCH) ::kill(pid, number);
  }
}

void Supervisor::on_time() {
  const auto now = clock_.now().boot;
  if (phase_ == Phase::Running && now >= lease_until_ && !lease_allows()) stop(StopRequested::WHY_ORPHANED, false);
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    signal_ranks(SIGKILL);
  }
  if (retry_at_ && now >= *retry_at_) retry_at_.reset();
  if (resweep_at_ && now >= *resweep_at_) resweep_at_.reset();
}

void Supervisor::advance() {
  if (phase_ == Phase::Swept || running_ > 0) return;
  if (reports_) read_reports();  // its end may have come together with the last exit
  if (phase_ != Phase::Sweeping) {
    phase_ = Phase::Sweeping;
    kill_at_.reset();
    const auto own = process::self();
    auto leftovers = own ? Leftovers::start(launch_.cookie(), cgroup_ ? &*cgroup_ : nullptr, own->start_time) : Result<Leftovers>(fail(Error(own.error())));
    if (!leftovers) {
      complaints_.say(leftovers.error().message);
      phase_ = Phase::Stopping;  // again, when the timer rings
      resweep_at_ = clock_.now().boot + kRetryAfter;
      return;
    }
    leftovers_.emplace(std::move(*leftovers));
    if (auto watched = watch(leftovers_->fd()); !watched) complaints_.say(watched.error().message);
  }
  if (!resweep_at_) sweep();
}

void Supervisor::sweep() {
  // Nothing ever ran: nothing can be left. (Without a launch record there is no cookie to look for either.)
  if (!launch_.cookie().empty()) {
    auto clean = leftovers_->step();
    if (!clean) {
      complaints_.say("sweeping: " + clean.error().message + "; trying again");
      resweep_at_ = clock_.now().boot + kRetryAfter;
      return;
    }
    if (!*clean) return;
  }
  events_.add().mutable_swept()->set_killed(leftovers_->killed());
  phase_ = Phase::Swept;
  if (!launch_.cgroup().empty()) {
    if (auto removed = process::remove_run_group(launch_.cgroup()); !removed) complaints_.say(removed.error().message);
  }
}

void Supervisor::flush() {
  if (retry_at_ || events_.flush()) return;
  if (auto complaint = events_.take_complaint()) complaints_.say(complaint->message + "; the events wait, trying again");
  retry_at_ = clock_.now().boot + kRetryAfter;
}

void Supervisor::arm_timer() {
  std::optional<BootTime> next;
  const auto consider = [&next](std::optional<BootTime> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (phase_ == Phase::Running) consider(lease_until_);
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
