// StartRunner runs the steps of starts (start_step.h). Host::Impl owns it, and all its methods run
// on the loop.
//
// Each start has its own thread, because file systems and tables may be slow or hang: a dead file
// system of one run does not delay another run's lease. At most `most` starts are at work at a
// time; further ones wait, in order. When a start's thread has done its steps, the last step runs
// on the loop.
//
// Two things end a start that hangs. Both are the node's fault, and say what hangs:
//
// - A step at work for longer than its bound is refused. Quick steps have one bound together, and
//   the wait for a thread counts, so that the node reports before the controller gives up.
// - If every thread has worked on one start for `patience`, the waiting starts are refused. So is a
//   start that gets no thread at all.
//
// The thread of a start that was refused or cancelled is abandoned: it begins no further step, its
// result is dropped, and nobody waits for it. It makes room for another start at once. But until it
// returns it counts among all abandoned threads, and among those of its job if its step is beyond
// its bound. A job that has `most_abandoned_of_job` of these gets no further start, while other
// jobs start. If there are `most_abandoned` in all, no job does. So a dead disk costs a bounded
// number of threads.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "agent/start/start_work.h"
#include "common/async/loop.h"
#include "common/base/mutex.h"
#include "common/base/time.h"

namespace muster::agent {

// What observes the steps, on the thread where they run. Each may be empty.
using StepHook = std::function<void(const RunKey&, StartStep)>;
struct StepHooks {
  StepHook before{}, after{};  // `after` only if the step has succeeded
  std::function<void(StartStep)> begun{};
  std::function<bool()> wanted{};  // false: no further step begins
};

// Runs the steps of this place that the order has, in order, on the calling thread, until one
// fails.
StepResult run_steps(StartWork& work, StepPlace place, const StepHooks& hooks = {});

class StartRunner {
 public:
  struct Options {
    std::size_t most = 64;
    std::size_t most_abandoned_of_job = 4;
    std::size_t most_abandoned = 256;
    Duration patience = std::chrono::seconds(10);
    // Tests make steps hang, or kill the process, and shorten the bounds.
    StepHook before_step{}, after_step{};
    std::function<Duration(StartStep, const v1::NodeLaunch&)> bound{};  // empty: the table's
  };
  // Called on the loop, never inside run(). They may be empty.
  struct Calls {
    std::function<void(StartStep)> begun;
    std::function<void(StepResult)> ended;  // success: the last step is done
  };

  StartRunner(async::Loop& loop, Options options);
  ~StartRunner() { close(); }
  StartRunner(const StartRunner&) = delete;
  StartRunner& operator=(const StartRunner&) = delete;

  void run(StartWork work, Calls calls);
  // Nobody wants the result of this start any more. It is named by its progress.
  void abandon(const StartProgress& progress);
  // Abandons every start, and begins no other one.
  void close();

 private:
  struct Home;
  struct Start;
  using Starts = std::list<std::shared_ptr<Start>>;
  void begin(const std::shared_ptr<Start>& start);
  void step_begun(const std::shared_ptr<Start>& start, StartStep step);
  void thread_ended(const std::shared_ptr<Start>& start, StepResult result);
  // Abandons a start at work.
  void leave(Starts::iterator start);
  void go_on();
  // The end of the bound of the step that it is at.
  [[nodiscard]] BootTime bound_ends(const Start& start, const StartProgress::Now& at) const;
  [[nodiscard]] Duration bound_of(StartStep step, const v1::NodeLaunch& order) const;
  void answer(const std::shared_ptr<Start>& start, Refusal refusal) const;
  // Set: too many earlier starts hang.
  [[nodiscard]] std::optional<Refusal> still_hangs(const Start& start, BootTime now) const;
  [[nodiscard]] Refusal blocked(BootTime now) const;

  async::Loop& loop_;
  const std::shared_ptr<Home> home_;
  // the oldest first
  Starts at_work_ MUSTER_GUARDED_BY(loop_), abandoned_ MUSTER_GUARDED_BY(loop_);
  std::deque<std::shared_ptr<Start>> waiting_ MUSTER_GUARDED_BY(loop_);
  async::Timer timer_;
};

}  // namespace muster::agent
