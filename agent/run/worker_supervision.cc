#include "agent/run/worker_supervision.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <utility>
#include <vector>

#include "common/io/file.h"
#include "common/process/identity.h"

namespace muster::agent {
namespace {

// for a worker whose launch record cannot be read
constexpr Duration kStopGraceUnknown = std::chrono::minutes(1);
constexpr int kFrozenChecks = 2;

// A process that cannot be checked counts as living.
bool has_ended(const process::ProcessId& id) {
  const auto process = process::Pidfd::open(id);
  return process ? process->exited() : process.error().code == ErrorCode::NotFound;
}

// Empty result: it cannot be found out.
std::optional<std::vector<pid_t>> children_of(pid_t pid) {
  const auto text = io::read_file(fmt::format("/proc/{0}/task/{0}/children", pid), 1U << 16U);
  if (!text) return std::nullopt;
  std::vector<pid_t> children;
  for (const char *at = text->data(), *const end = at + text->size(); at < end; ++at) {
    pid_t child = 0;
    const auto [next, error] = std::from_chars(at, end, child);
    if (error == std::errc()) children.push_back(child);
    at = next;
  }
  return children;
}

// Once all ranks have started, the worker's records list them. What a rank left behind may live on
// as a child of the worker. Before that, only the worker's children can be checked.
bool ranks_have_ended(const RunView& view, pid_t worker) {
  if (view.seen().started) {
    std::set<std::uint64_t> ranks;
    for (const auto& [rank, pid] : view.seen().pids) ranks.insert(pid);
    return std::ranges::all_of(view.leaders(), [&](const process::ProcessId& leader) {
      return !ranks.contains(static_cast<std::uint64_t>(leader.pid)) || has_ended(leader);
    });
  }
  const auto children = children_of(worker);
  return children && !children->empty() && std::ranges::all_of(*children, [](pid_t child) {
           const auto id = process::identify(child);
           return id ? has_ended(*id) : id.error().code == ErrorCode::NotFound;
         });
}

bool supervises_nobody(const RunView& view) {
  const auto worker = static_cast<pid_t>(view.seen().worker_pid);
  const auto stat = process::read_stat(worker);
  return stat && (stat->state == 'T' || stat->state == 't') && !view.worker()->exited() &&
         ranks_have_ended(view, worker);
}

Duration stop_grace(const RunView& view) {
  if (view.launch() == nullptr) return kStopGraceUnknown;
  return std::max(Duration::zero(),
                  Duration(std::chrono::milliseconds(view.launch()->stop_grace_ms())));
}

}  // namespace

Result<void> WorkerSupervision::spawned(pid_t pid) {
  loop_.assert_on();
  child_ = pid;
  auto child = process::Pidfd::open_child(pid);
  if (!child) return fail(std::move(child).error());
  child_fd_ = std::move(*child);
  child_ready_ = std::make_unique<async::Readable>(loop_, "child ended", child_fd_->fd(), [this] {
    reap();
    if (has_child()) return;
    const std::function<void()> ended = std::move(callbacks_.child_ended);  // it may destroy this
    ended();
  });
  return {};
}

void WorkerSupervision::reap() {
  if (!child_fd_ || !child_fd_->exited()) return;
  child_ready_.reset();
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_fd_.reset();
  child_ = 0;
}

void WorkerSupervision::leave(std::function<void()> then) {
  obey_timer_.reset();
  worker_ready_.reset();
  callbacks_.child_ended = std::move(then);
}

void WorkerSupervision::update(const RunView& view, const RunSeen& seen,
                               std::optional<BootTime> lease) {
  if (view.worker() != nullptr && !worker_ready_ && seen.worker == WorkerState::Alive) {
    worker_ready_ =
        std::make_unique<async::Readable>(loop_, "worker ended", view.worker()->fd(), [this] {
          worker_ready_.reset();
          reap();
          callbacks_.worker_ended();
        });
  }
  // A later time (a lease is renewed every few seconds) is found when the timer expires.
  const auto by = must_obey_by(view, seen, lease);
  if (!by) return obey_timer_.reset();
  if (obey_timer_ && obey_at_ <= *by) return;
  if (!obey_timer_) obey_timer_ = std::make_unique<async::Timer>(loop_, "worker must obey");
  obey_at_ = *by;
  obey_timer_->arm(*by - options_.clock->now().boot, [this] {
    obey_timer_.reset();
    callbacks_.overdue();
  });
}

// Returns when a living worker that has not done its duty counts as frozen. Empty result: it has
// done its duty.
std::optional<BootTime> WorkerSupervision::must_obey_by(const RunView& view, const RunSeen& seen,
                                                        std::optional<BootTime> lease) const {
  if (killed_ || seen.swept || seen.worker != WorkerState::Alive || view.worker() == nullptr)
    return std::nullopt;
  const Duration grace = stop_grace(view);
  std::optional<BootTime> by;
  const auto at_latest = [&by](BootTime time) { by = std::min(by.value_or(time), time); };
  if (const auto written = view.stop_written()) {
    at_latest(*written + grace + options_.margin);
  } else if (lease) {
    // The controller, which counts on the end of the lease, also waits for a stop's grace, and no
    // longer.
    at_latest(*lease +
              std::min(options_.margin, std::max<Duration>(grace, std::chrono::seconds(1))));
  }
  if (stop_signalled_) at_latest(*stop_signalled_ + grace + options_.margin);
  return by;
}

std::string WorkerSupervision::judge(const RunView& view, const RunSeen& seen,
                                     std::optional<BootTime> lease) const {
  const auto by = must_obey_by(view, seen, lease);
  if (!by || *by > options_.clock->now().boot) return {};
  return stop_signalled_ || view.stop_written()
             ? "was asked to stop and has not ended the run in time"
             : "has not stopped its ranks at the end of the orphan grace";
}

Result<bool> WorkerSupervision::stop(const RunView& view) {
  loop_.assert_on();
  if (stop_signalled_ || view.worker() == nullptr) return false;
  if (auto sent = view.worker()->signal(SIGTERM); !sent) return fail(std::move(sent).error());
  stop_signalled_ = options_.clock->now().boot;
  return true;
}

std::optional<std::string> WorkerSupervision::check_frozen(const RunView& view,
                                                           const RunSeen& seen) {
  if (killed_ || seen.worker != WorkerState::Alive || view.worker() == nullptr) return std::nullopt;
  found_frozen_ = supervises_nobody(view) ? found_frozen_ + 1 : 0;
  return found_frozen_ < kFrozenChecks ? "" : "is stopped though its ranks have ended";
}

Result<void> WorkerSupervision::kill(const RunView& view) {
  loop_.assert_on();
  killed_ = true;
  obey_timer_.reset();
  auto sent = view.worker()->signal(SIGKILL);
  if (!sent && sent.error().code != ErrorCode::NotFound) return sent;
  return {};
}

}  // namespace muster::agent
