// WorkerSupervision follows the worker of one run: it sees its end, reaps it if this agent spawned
// it, asks it to stop, and judges whether it obeys. The run's Host::Entry owns it. It runs on the
// agent's loop.
//
// A worker that does not obey is killed, and its ranks die with it. Three workers do not obey:
//
// - It was asked to stop and has not written Swept within its grace plus `margin`.
// - Its lease is over and it has not written its stop.
// - It is stopped (SIGSTOP, a debugger), and all its ranks have ended: it cannot report that. The
//   agent would otherwise see only the worker's own end. Two checks in a row must find this. A
//   process that was stopped only for a moment has continued by then.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/run/run_view.h"
#include "common/async/loop.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/process/pidfd.h"

namespace muster::agent {

class WorkerSupervision {
 public:
  struct Options {
    Duration margin{};
    const Clock* clock = &system_clock();
  };
  struct Callbacks {
    std::function<void()> child_ended;   // the process that this agent spawned; it is reaped
    std::function<void()> worker_ended;  // the process that claimed the run
    std::function<void()> overdue;       // read the run again, then call judge()
  };
  WorkerSupervision(async::Loop& loop, Options options, Callbacks callbacks)
      : loop_(loop), options_(options), callbacks_(std::move(callbacks)) {}
  WorkerSupervision(const WorkerSupervision&) = delete;
  WorkerSupervision& operator=(const WorkerSupervision&) = delete;

  // This agent has spawned `pid`. An error: its end is not reported; it is reaped with the agent.
  Result<void> spawned(pid_t pid);
  // Not reaped yet.
  [[nodiscard]] bool has_child() const { return child_fd_.has_value(); }
  // The run is forgotten: only the child is waited for. `then` may destroy this object.
  void leave(std::function<void()> then);

  // Call it whenever the run was read. `lease`: until when the worker may go on.
  void update(const RunView& view, const RunSeen& seen, std::optional<BootTime> lease);
  // Sends SIGTERM, once. True: it was sent now. NotFound: the worker has ended.
  Result<bool> stop(const RunView& view);
  [[nodiscard]] bool stop_signalled() const { return stop_signalled_.has_value(); }
  // Returns why the worker has to be killed now; empty: it obeys.
  [[nodiscard]] std::string judge(const RunView& view, const RunSeen& seen,
                                  std::optional<BootTime> lease) const;
  // The regular check whether the worker is stopped and supervises nobody. Returns why it has to be
  // killed now; empty: go on. Nothing: no check of this worker is needed any more.
  std::optional<std::string> check_frozen(const RunView& view, const RunSeen& seen);
  // SIGKILL, once. Its pidfd reports its end.
  Result<void> kill(const RunView& view);

 private:
  [[nodiscard]] std::optional<BootTime> must_obey_by(const RunView& view, const RunSeen& seen,
                                                     std::optional<BootTime> lease) const;
  void reap();

  async::Loop& loop_;
  const Options options_;
  Callbacks callbacks_;
  // Order matters: a Readable must be destroyed before the descriptor that it waits on. The
  // worker's descriptor is in the RunView.
  std::optional<process::Pidfd> child_fd_;
  pid_t child_ = 0;
  std::unique_ptr<async::Readable> child_ready_, worker_ready_;
  std::optional<BootTime> stop_signalled_;  // by this incarnation of the agent
  std::unique_ptr<async::Timer> obey_timer_;
  BootTime obey_at_{};    // when obey_timer_ expires
  int found_frozen_ = 0;  // checks in a row
  bool killed_ = false;
};

}  // namespace muster::agent
