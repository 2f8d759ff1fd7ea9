// The bounds of a start: of its steps, and of the threads that starts that hang leave.
#include "agent/start/start_runner.h"

#include <atomic>

#include "tests/unit/agent_run/start_runner_ground.h"

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

TEST_F(StartRunnerTest, AStepBeyondItsBoundIsRefusedAndItsThreadIsAbandoned) {
  make(1, 1h, [](StartStep step, const v1::NodeLaunch& of) {
    return step == StartStep::Files && of.job_name() == "a" ? Duration(1ms) : Duration(1h);
  });
  Outcome hanging = hang("a", StartStep::Files);
  ASSERT_EQ(hanging.wait_for(20s), std::future_status::ready);
  const StepResult result = hanging.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().why, v1::START_FAILURE_NODE);
  EXPECT_EQ(result.error().step, "files");
  EXPECT_THAT(result.error().text,
              MatchesRegex("preparing the start: step 'files' is not done after [0-9]+ s of "
                           "writing the files of job 'a' attempt 1; is that file system there.*"));
  Outcome next = run("b");
  EXPECT_EQ(text_of(next), "started") << "the abandoned thread makes room";
  steps_->let_go();
  Outcome last = run("c");
  EXPECT_EQ(text_of(last), "started");
  EXPECT_THAT(begun("a"), ElementsAre("check", "directories", "files"))
      << "it begins no further step, and its result is dropped";
}

// Regression: a slow check and then a hang took longer together than the controller waits, and
// nobody said which step hung.
TEST_F(StartRunnerTest, QuickStepsHaveOneBoundTogether) {
  make(1, 1h, [](StartStep step, const v1::NodeLaunch&) {
    return step == StartStep::Record ? Duration(3s) : Duration(1h);
  });
  {
    const std::lock_guard lock(steps_->mutex);
    steps_->slow[{"a", StartStep::Check}] = 3100ms;
  }
  Outcome outcome = hang("a", StartStep::Record);
  // With a bound of its own the step would have had 3 s.
  EXPECT_THAT(text_of(outcome),
              MatchesRegex("refused: preparing the start: step 'record' is not done after [0-2] s "
                           "of looking for the programs of job 'a' attempt 1, and [3-9] s "
                           "before that step; is that file system there.*"));
}

// The controller's limit counts from the order.
TEST_F(StartRunnerTest, TheWaitForAThreadCountsToTheBoundOfQuickSteps) {
  make(1, 1h, [](StartStep, const v1::NodeLaunch& order) {
    return order.job_name() == "a" ? Duration(1h) : Duration(1s);
  });
  Outcome first = hang("a", StartStep::Check);
  {
    const std::lock_guard lock(steps_->mutex);
    steps_->hangs.emplace("b", StartStep::Check);
  }
  Outcome second = run("b");
  {
    std::unique_lock lock(steps_->mutex);
    steps_->changed.wait_for(lock, 1100ms, [&] { return steps_->gone; });
  }
  on_loop([this] { runner_->abandon(*progress_.at("a")); });
  EXPECT_THAT(
      text_of(second),
      MatchesRegex("refused: preparing the start: step 'check' is not "
                   "done after [0-9]+ s of .*, and [1-9][0-9]* s of waiting for a thread; .*"));
}

// A step that takes long has a bound of its own, and none of the others'.
TEST_F(StartRunnerTest, AStepThatTakesLongUsesUpNothingOfTheQuickSteps) {
  make(1, 1h, [](StartStep step, const v1::NodeLaunch&) {
    return row_of(step).takes_long ? Duration(1h) : Duration(2s);
  });
  {
    const std::lock_guard lock(steps_->mutex);
    steps_->slow[{"a", StartStep::Fetch}] = 2200ms;
  }
  v1::NodeLaunch wanted = order("a");
  wanted.add_fetches();
  Outcome outcome = run(wanted);
  EXPECT_EQ(text_of(outcome), "started");
}

// The bound of the step before does not count.
TEST_F(StartRunnerTest, AShortBoundAfterALongOneIsNoticed) {
  make(1, 1h, [](StartStep step, const v1::NodeLaunch&) {
    return step == StartStep::Record ? Duration(1ms) : Duration(1h);
  });
  Outcome outcome = hang("a", StartStep::Record);
  EXPECT_THAT(text_of(outcome), HasSubstr("step 'record' is not done after "));
}

// Regression: 64 cancelled starts on one dead disk took every thread of the node, and no other job
// could start.
TEST_F(StartRunnerTest, AbandonedThreadsOfOneJobRefuseOnlyThatJob) {
  const auto bound = std::make_shared<std::atomic<Duration>>(1h);
  make(1, 1h, [bound](StartStep, const v1::NodeLaunch&) { return bound->load(); }, 2);
  const auto cancel = [this] { on_loop([this] { runner_->abandon(*progress_.at("a")); }); };
  Outcome first = hang("a", StartStep::Files);
  cancel();
  Outcome second = run("a");
  ASSERT_TRUE(steps_->wait_for("a", StartStep::Files, 2));
  cancel();
  EXPECT_TRUE(is_open(first));
  // Two steps that take their time are no reason: a third start begins.
  Outcome third = run("a");
  ASSERT_TRUE(steps_->wait_for("a", StartStep::Files, 3));
  cancel();
  bound->store(0s);
  third = run("a");
  ASSERT_EQ(third.wait_for(20s), std::future_status::ready);
  const StepResult refused = third.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().why, v1::START_FAILURE_NODE);
  EXPECT_EQ(refused.error().step, "check");
  EXPECT_THAT(refused.error().text,
              MatchesRegex("preparing the start: 3 earlier starts of this job still hang on this "
                           "node, one for [0-9]+ s in step 'files', writing the files of job 'a' "
                           "attempt 1; is that file system there.*"));
  bound->store(1h);
  Outcome other = run("b");
  EXPECT_EQ(text_of(other), "started");
  steps_->let_go();
  EXPECT_TRUE(is_dropped(first));
  EXPECT_TRUE(is_dropped(second));
  Outcome again = run("a");
  EXPECT_EQ(text_of(again), "started") << "the threads have come back";
}

TEST_F(StartRunnerTest, AbandonedThreadsAreBounded) {
  make(1, 1h, {}, 4, 2);
  std::vector<Outcome> hanging;
  for (const char* job : {"a", "b"}) {
    hanging.push_back(hang(job, StartStep::Files));
    on_loop([&] { runner_->abandon(*progress_.at(job)); });
  }
  Outcome refused = run("c");
  EXPECT_THAT(text_of(refused),
              MatchesRegex("refused: preparing the start: 2 earlier starts still hang on this "
                           "node, one for [0-9]+ s in step 'files', writing the files of job 'a' "
                           "attempt 1; .*"));
  EXPECT_THAT(begun("c"), ElementsAre());
  steps_->let_go();
  for (Outcome& outcome : hanging) EXPECT_TRUE(is_dropped(outcome));
  Outcome next = run("d");
  EXPECT_EQ(text_of(next), "started");
}

}  // namespace
}  // namespace muster::agent
