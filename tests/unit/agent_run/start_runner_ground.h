// The test fixture for StartRunner: a runner on a loop, whose steps hang or are slow as the test
// says. gtest creates it for each test. Tests run on their own thread, the runner on the loop.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "agent/start/start_runner.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {

using namespace std::chrono_literals;

inline constexpr const char* kNothing = "no answer";

// What the steps have done. Threads of starts share it, and may outlive the test.
struct Steps {
  using Name = std::pair<std::string, StartStep>;

  void before(const std::string& job, StartStep step) {
    std::unique_lock lock(mutex);
    begun.emplace_back(job, step);
    changed.notify_all();
    changed.wait(lock, [&] { return gone || !hangs.contains({job, step}); });
    if (const auto found = slow.find({job, step}); found != slow.end()) {
      const Duration time = found->second;
      changed.wait_for(lock, time, [&] { return gone; });
    }
  }
  void after(const std::string& job, StartStep step) {
    const std::lock_guard lock(mutex);
    done.emplace_back(job, step);
  }
  // Until this step has begun so often.
  bool wait_for(const std::string& job, StartStep step, std::ptrdiff_t times = 1) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s,
                            [&] { return std::ranges::count(begun, Name(job, step)) >= times; });
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    gone = true;
    changed.notify_all();
  }
  std::vector<std::string> of(const std::string& job, const std::vector<Name>& all) {
    const std::lock_guard lock(mutex);
    std::vector<std::string> words;
    for (const auto& [whose, step] : all)
      if (whose == job) words.emplace_back(row_of(step).word);
    return words;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::set<Name> hangs;
  std::map<Name, Duration> slow;
  std::vector<Name> begun, done;
  bool gone = false;
};

class StartRunnerTest : public ::testing::Test {
 protected:
  using Outcome = std::future<StepResult>;

  ~StartRunnerTest() override {
    on_loop([this] { runner_.reset(); });
    steps_->let_go();
    loop_.stop();
  }
  void make(std::size_t most, Duration patience,
            std::function<Duration(StartStep, const v1::NodeLaunch&)> bound = {},
            std::size_t most_abandoned_of_job = 4, std::size_t most_abandoned = 256) {
    const auto hook = [this](void (Steps::*call)(const std::string&, StartStep)) {
      return [steps = steps_, call](const RunKey& run, StartStep step) {
        ((*steps).*call)(run.first.str(), step);
      };
    };
    on_loop([&] {
      runner_.emplace(loop_, StartRunner::Options{.most = most,
                                                  .most_abandoned_of_job = most_abandoned_of_job,
                                                  .most_abandoned = most_abandoned,
                                                  .patience = patience,
                                                  .before_step = hook(&Steps::before),
                                                  .after_step = hook(&Steps::after),
                                                  .bound = std::move(bound)});
    });
  }
  void on_loop(const std::function<void()>& task) { test::run_on(loop_, task); }
  [[nodiscard]] v1::NodeLaunch order(const std::string& job) const {
    v1::NodeLaunch order;
    order.set_job_name(job);
    order.set_attempt(1);
    order.add_make_dirs((dir_.path() / job).string());
    return order;
  }
  Outcome run(const v1::NodeLaunch& order) {
    const auto outcome = std::make_shared<std::promise<StepResult>>();
    on_loop([&] {
      StartWork work{
          .order = order,
          .node = {.state_dir = dir_.path()},
          .layout = rundir::RunLayout(dir_.path() / "run"),
          .context = {.run = {JobId(order.job_name()), AttemptNo(1)}},
          .fetch = [](const v1::NodeLaunch&, int, const UserEntry*) -> Result<void> { return {}; },
          .spawn = [this](StartWork&) -> StepResult {
            EXPECT_TRUE(loop_.on_this());
            return {};
          }};
      progress_[order.job_name()] = work.progress;
      runner_->run(std::move(work), {.begun = {}, .ended = [this, outcome](StepResult result) {
                                       EXPECT_TRUE(loop_.on_this());
                                       outcome->set_value(std::move(result));
                                     }});
    });
    return outcome->get_future();
  }
  Outcome run(const std::string& job) { return run(order(job)); }
  // It hangs at this step when this returns.
  Outcome hang(const std::string& job, StartStep step) {
    {
      const std::lock_guard lock(steps_->mutex);
      steps_->hangs.emplace(job, step);
    }
    Outcome outcome = run(job);
    EXPECT_TRUE(steps_->wait_for(job, step));
    return outcome;
  }
  static std::string text_of(Outcome& outcome) {
    if (outcome.wait_for(20s) != std::future_status::ready) return kNothing;
    const StepResult result = outcome.get();
    return result ? "started" : "refused: " + result.error().text;
  }
  static bool is_open(const Outcome& outcome) {
    return outcome.wait_for(0s) == std::future_status::timeout;
  }
  // True: its calls were destroyed without a result.
  static bool is_dropped(Outcome& outcome) {
    try {
      (void)outcome.get();
    } catch (const std::future_error& error) {
      return error.code() == std::future_errc::broken_promise;
    }
    return false;
  }
  std::vector<std::string> begun(const std::string& job) { return steps_->of(job, steps_->begun); }
  std::vector<std::string> done(const std::string& job) { return steps_->of(job, steps_->done); }

  const TempDir dir_;
  async::Loop loop_{"test-starts"};
  const std::shared_ptr<Steps> steps_ = std::make_shared<Steps>();
  std::optional<StartRunner> runner_;
  std::map<std::string, std::shared_ptr<StartProgress>> progress_;
};

}  // namespace muster::agent
