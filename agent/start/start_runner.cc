#include "agent/start/start_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "agent/launch/now_preparing.h"
#include "common/base/mutex.h"

namespace muster::agent {
namespace {

std::int64_t whole_seconds(Duration time) { return time / std::chrono::seconds(1); }

// `queued`: how long it has waited for its thread.
Refusal late(const StartProgress::Now& at, Duration queued, BootTime now) {
  const StartStepRow& row = row_of(*at.step);
  std::string more;
  if (!row.takes_long && whole_seconds(at.quick_before) > 0)
    more += fmt::format(", and {} s before that step", whole_seconds(at.quick_before));
  if (!row.takes_long && whole_seconds(queued) > 0)
    more += fmt::format(", and {} s of waiting for a thread", whole_seconds(queued));
  return {
      .why = v1::START_FAILURE_NODE,
      .text = fmt::format("preparing the start: step '{}' is not done after {} s of {}{}; is that "
                          "file system there?",
                          row.word, whole_seconds(now - at.since), at.sentence, more),
      .step = std::string(row.word)};
}

// Of a start that has begun no step: it fails at its first one.
Refusal before_steps(std::string text) {
  return {.why = v1::START_FAILURE_NODE,
          .text = "preparing the start: " + std::move(text),
          .step = std::string(kStartSteps.front().word)};
}

Refusal without_thread(const std::system_error& error) {
  return before_steps(
      fmt::format("no thread is to be had: {}; raise the limit of processes of the agent's user "
                  "(ulimit -u), or pids.max of its control group",
                  error.code().message()));
}

}  // namespace

StepResult run_steps(StartWork& work, StepPlace place, const StepHooks& hooks) {
  work.context.layout = &work.layout;
  const auto wanted = [&] { return !hooks.wanted || hooks.wanted(); };
  Duration quick{};  // spent on quick steps
  for (const StartStepRow& row : kStartSteps) {
    if (row.place != place || !row.in_order(work.order)) continue;
    if (!wanted()) return {};
    const BootTime began = system_clock().now().boot;
    work.progress->begin(row.step, row.sentence(work.order), quick);
    if (hooks.begun) hooks.begun(row.step);
    if (hooks.before) hooks.before(work.context.run, row.step);
    if (!wanted()) return {};
    if (auto done = row.run(work); !done) {
      done.error().step = row.word;
      return done;
    }
    if (hooks.after) hooks.after(work.context.run, row.step);
    if (!row.takes_long) quick += system_clock().now().boot - began;
  }
  return {};
}

// The threads share it with the runner, and outlive the runner if they hang.
struct StartRunner::Home {
  Home(async::Loop& of, Options given) : options(std::move(given)), loop(&of) {}
  void post(const char* name, async::Task task) {
    const MutexLock lock(mutex);
    if (loop != nullptr) loop->post(name, std::move(task));
  }
  bool closed() {
    const MutexLock lock(mutex);
    return loop == nullptr;
  }

  const Options options;
  Mutex mutex;
  async::Loop* loop MUSTER_GUARDED_BY(mutex);  // nullptr: closed
};

struct StartRunner::Start {
  Start(StartWork given, Calls hooks) : work(std::move(given)), calls(std::move(hooks)) {}

  StartWork work;
  Calls calls;
  const BootTime given = system_clock().now().boot;
  BootTime since{};  // its thread began
  // Set on the loop. The thread may take the whole of `work`.
  const std::shared_ptr<Abandoned> abandoned = work.abandoned;
};

StartRunner::StartRunner(async::Loop& loop, Options options)
    : loop_(loop),
      home_(std::make_shared<Home>(loop, std::move(options))),
      timer_(loop, "bounds of starts") {}

void StartRunner::run(StartWork work, Calls calls) {
  loop_.assert_on();
  if (home_->closed()) return;
  waiting_.push_back(std::make_shared<Start>(std::move(work), std::move(calls)));
  go_on();
}

void StartRunner::abandon(const StartProgress& progress) {
  loop_.assert_on();
  const auto is_it = [&](const auto& start) { return start->work.progress.get() == &progress; };
  std::erase_if(waiting_, is_it);
  if (const auto at = std::ranges::find_if(at_work_, is_it); at != at_work_.end()) {
    leave(at);
    go_on();
  }
}

void StartRunner::leave(Starts::iterator start) {
  loop_.assert_on();
  (*start)->abandoned->set();
  abandoned_.splice(abandoned_.end(), at_work_, start);
}

// A posted task must not touch this object when it is closed: it may be destroyed. If it is closed,
// that happened on this loop.
void StartRunner::begin(const std::shared_ptr<Start>& start) {
  loop_.assert_on();
  start->since = system_clock().now().boot;
  at_work_.push_back(start);
  try {
    std::thread([home = home_, this, start] {
      prepare_for(start->work.progress.get());
      StepResult result = run_steps(start->work, StepPlace::Thread,
                                    {.before = home->options.before_step,
                                     .after = home->options.after_step,
                                     .begun =
                                         [&](StartStep step) {
                                           home->post("step of a start", [home, this, start, step] {
                                             if (!home->closed()) step_begun(start, step);
                                           });
                                         },
                                     .wanted = [&] { return !start->abandoned->is_set(); }});
      prepare_for(nullptr);
      home->post("start prepared", [home, this, start, result = std::move(result)]() mutable {
        if (!home->closed()) thread_ended(start, std::move(result));
      });
    }).detach();
  } catch (const std::system_error& error) {
    at_work_.pop_back();
    answer(start, without_thread(error));
  }
}

void StartRunner::step_begun(const std::shared_ptr<Start>& start, StartStep step) {
  if (start->abandoned->is_set()) return;
  const std::shared_ptr<Home> home = home_;
  if (start->calls.begun) start->calls.begun(step);
  if (!home->closed()) go_on();
}

void StartRunner::thread_ended(const std::shared_ptr<Start>& start, StepResult result) {
  loop_.assert_on();
  const std::shared_ptr<Home> home = home_;
  at_work_.remove(start);
  abandoned_.remove(start);
  if (!start->abandoned->is_set()) {
    if (result)
      result = run_steps(start->work, StepPlace::Loop,
                         {.before = home->options.before_step,
                          .after = home->options.after_step,
                          .begun = start->calls.begun});
    if (start->calls.ended) start->calls.ended(std::move(result));
  }
  if (!home->closed()) go_on();
}

// Quick steps have one bound together. The wait for a thread counts, too, because the controller's
// own limit counts from the order.
BootTime StartRunner::bound_ends(const Start& start, const StartProgress::Now& at) const {
  const BootTime alone = at.since + bound_of(*at.step, start.work.order);
  return row_of(*at.step).takes_long ? alone
                                     : alone - at.quick_before - (start.since - start.given);
}

Duration StartRunner::bound_of(StartStep step, const v1::NodeLaunch& order) const {
  return home_->options.bound ? home_->options.bound(step, order) : row_of(step).bound(order);
}

void StartRunner::answer(const std::shared_ptr<Start>& start, Refusal refusal) const {
  home_->post("start refused", [home = home_, start, refusal = std::move(refusal)]() mutable {
    if (!home->closed() && start->calls.ended)
      start->calls.ended(std::unexpected(std::move(refusal)));
  });
}

// Refuses what hangs, and gives free threads to the waiting starts. If the newest thread is also
// blocked, the waiting starts are refused.
void StartRunner::go_on() {
  loop_.assert_on();
  timer_.cancel();
  const BootTime now = system_clock().now().boot;
  BootTime next = BootTime::max();
  for (auto place = at_work_.begin(); place != at_work_.end();) {
    const auto start = place++;
    const StartProgress::Now at = (*start)->work.progress->now();
    if (!at.step) continue;  // it has only just begun
    const BootTime until = bound_ends(**start, at);
    if (now < until) {
      next = std::min(next, until);
      continue;
    }
    answer(*start, late(at, (*start)->since - (*start)->given, now));
    leave(start);
  }
  while (!waiting_.empty() && at_work_.size() < home_->options.most) {
    const std::shared_ptr<Start> start = std::move(waiting_.front());
    waiting_.pop_front();
    if (auto refusal = still_hangs(*start, now)) {
      answer(start, *std::move(refusal));
    } else {
      begin(start);
    }
  }
  if (!waiting_.empty()) {
    const BootTime until = at_work_.back()->since + home_->options.patience;
    if (now < until) {
      next = std::min(next, until);
    } else {
      const Refusal refusal = blocked(now);
      for (const std::shared_ptr<Start>& start : std::exchange(waiting_, {}))
        answer(start, refusal);
    }
  }
  if (next != BootTime::max()) timer_.arm(next - now, [this] { go_on(); });
}

std::optional<Refusal> StartRunner::still_hangs(const Start& start, BootTime now) const {
  loop_.assert_on();
  // A pull that was cancelled also has an abandoned thread, and nothing hangs.
  const auto of_job = [&](const std::shared_ptr<Start>& one) {
    const StartProgress::Now at = one->work.progress->now();
    return one->work.context.run.first == start.work.context.run.first && at.step &&
           now >= bound_ends(*one, at);
  };
  std::vector<const Start*> of_it;
  for (const std::shared_ptr<Start>& one : abandoned_)
    if (of_job(one)) of_it.push_back(one.get());
  const bool job_is_full = of_it.size() >= home_->options.most_abandoned_of_job;
  if (!job_is_full && abandoned_.size() < home_->options.most_abandoned) return std::nullopt;
  const Start& first = job_is_full ? *of_it.front() : *abandoned_.front();
  const StartProgress::Now at = first.work.progress->now();
  return before_steps(fmt::format(
      "{} earlier starts{} still hang on this node, one for {} s in step '{}', {}; is that file "
      "system there? They end with it, or with a restart of the agent",
      job_is_full ? of_it.size() : abandoned_.size(), job_is_full ? " of this job" : "",
      whole_seconds(now - first.since), row_of(at.step.value_or(kStartSteps.front().step)).word,
      at.sentence));
}

Refusal StartRunner::blocked(BootTime now) const {
  loop_.assert_on();
  const Start& longest = *at_work_.front();
  return before_steps(
      fmt::format("all {} threads for starts are blocked on this node, the longest for {} s in {}; "
                  "is that file system there? They come back with it, or with a restart of the "
                  "agent",
                  home_->options.most, whole_seconds(now - longest.since),
                  longest.work.progress->now().sentence));
}

void StartRunner::close() {
  {
    const MutexLock lock(home_->mutex);
    if (home_->loop == nullptr) return;
    home_->loop = nullptr;
  }
  loop_.assert_on();
  timer_.cancel();
  waiting_.clear();
  for (const std::shared_ptr<Start>& start : std::exchange(at_work_, {})) start->abandoned->set();
  abandoned_.clear();
}

}  // namespace muster::agent
