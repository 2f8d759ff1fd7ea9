#include "worker/leftovers.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>

#include "common/rundir/layout.h"
#include "worker/children.h"

namespace muster::worker {
namespace {

constexpr long kScanAgainNs = 10'000'000;

Result<void> watch(int epoll, int fd, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    return fail_errno("watching for processes that are left", errno);
  return {};
}

}  // namespace

Result<Leftovers> Leftovers::start(std::string process_tag, const process::TagUsers& users,
                                   const process::Cgroup* cgroup, std::uint64_t since) {
  io::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  io::UniqueFd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll || !timer) return fail_errno("starting to sweep", errno);
  if (auto watched = watch(epoll.get(), timer.get(), EPOLLIN); !watched)
    return fail(std::move(watched.error()));
  if (cgroup != nullptr) {
    if (auto watched = watch(epoll.get(), cgroup->events_fd(), EPOLLPRI); !watched)
      return fail(std::move(watched.error()));
  }
  return Leftovers(std::move(process_tag), users, cgroup, since, std::move(epoll),
                   std::move(timer));
}

void Leftovers::scan_again_soon() {
  const itimerspec again{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = kScanAgainNs}};
  ::timerfd_settime(timer_.get(), 0, &again, nullptr);
}

bool Leftovers::kill_children() {
  if (!has_children()) return false;
  bool fresh = false;
  for (const pid_t pid : children()) {
    // Our unreaped child: no other process can have this pid.
    ::kill(pid, SIGKILL);
    fresh |= killed_.insert(pid).second;
  }
  // Each death causes a SIGCHLD, and the dead process's children are then ours. The timer is for a
  // list that left some out.
  if (!fresh) scan_again_soon();
  return true;
}

Result<bool> Leftovers::cgroup_empty() {
  auto empty = cgroup_->empty();
  if (!empty || *empty) return empty;
  if (auto killed = cgroup_->kill(); !killed) return fail(std::move(killed.error()));
  scan_again_soon();
  return false;
}

Result<bool> Leftovers::step() {
  std::uint64_t ticks = 0;
  (void)!::read(timer_.get(), &ticks, sizeof ticks);
  if (kill_children()) return false;
  if (cgroup_ != nullptr && !cgroup_->gone()) return cgroup_empty();
  if (!sweep_) {
    auto sweep = process::ProcessTagSweep::start(rundir::kProcessTagVariable, process_tag_, since_,
                                                 std::nullopt, users_);
    if (!sweep) return fail(std::move(sweep.error()));
    sweep_.emplace(std::move(*sweep));
    if (auto watched = watch(epoll_.get(), sweep_->fd(), EPOLLIN); !watched)
      return fail(std::move(watched.error()));
  }
  auto progress = sweep_->step();
  if (!progress) return fail(std::move(progress.error()));
  return *progress == process::ProcessTagSweep::Progress::Done;
}

}  // namespace muster::worker
