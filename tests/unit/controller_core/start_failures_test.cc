#include "controller/core/recovery/start_failures.h"

#include <gmock/gmock.h>

#include "controller/core/model/text.h"
#include "tests/unit/controller_core/chain_world.h"

namespace muster::core {
namespace {

using std::chrono::seconds;

struct Failing : SmallWorld {
  explicit Failing(std::vector<const char*> nodes) {
    for (const char* name : nodes) node(name, 1);
    submit("j1", spec("train", 1, 1));
  }
  [[nodiscard]] const AttemptRecord& current() const { return *job("j1").current(); }
  [[nodiscard]] std::string where() const { return current().parts.front().placed.node.str(); }
  void fail_start(v1::StartFailure why) {
    const std::string on = where();
    const std::uint32_t number = current().number.value;
    v1::Fact what = fact("j1", number);
    what.mutable_start_failed()->set_why(why);
    what.mutable_start_failed()->set_text("no");
    report(on, std::move(what));
    swept("j1", number, on, v1::SWEPT_WHY_NEVER_STARTED);
  }
  void wait(Duration time) {
    pass(time);
    for (const auto& [name, seen] : std::map(presence.nodes))
      observe(presence, ledger, HeartbeatHeard{.node = name, .connection = seen.connection}, now);
    settle();
  }
};

TEST(StartFailures, EveryKindHasOneAtFault) {
  using enum StartFailure;
  for (const StartFailure why : {Gone, Launch, Port, Disk, Node, Checkpoint}) {
    EXPECT_FALSE(is_jobs_own(why, JobRecord()) && is_nodes_own(why)) << to_string(why);
    EXPECT_EQ(is_jobs_own(why, JobRecord()), why == Launch) << to_string(why);
  }
}

TEST(StartFailures, TheStepIsKeptWithinBounds) {
  for (const auto& [reported, kept] :
       {std::pair<std::string, std::string>("code", "code"),
        {"", ""},
        {"co\nde" + std::string(5'000, 'x'), "co?de" + std::string(27, 'x')},
        {std::string(31, 'x') + "\xe6\xad\xa5", std::string(31, 'x')}}) {
    Failing world({"n0"});
    v1::Fact what = world.fact("j1", 1);
    what.mutable_start_failed()->set_why(v1::START_FAILURE_LAUNCH);
    what.mutable_start_failed()->set_step(reported);
    world.report("n0", what);
    what.mutable_start_failed()->set_step("fetch");
    EXPECT_TRUE(world.report("n0", what).events.empty()) << "known";
    EXPECT_EQ(world.job("j1").attempts.at(0).part(NodeName("n0"))->start_failed->step, kept);
    EXPECT_THAT(dump(world.ledger), testing::HasSubstr(fmt::format(
                                        "start failed launch '' at {0}/{0}{1}\n",
                                        world.now.wall.time_since_epoch().count(),
                                        kept.empty() ? "" : fmt::format(" step='{}'", kept))));
    EXPECT_EQ(replay_of_what_is_kept(world), dump(world.ledger));
  }
}

TEST(StartFailures, WhatIsNotThereAtTheFirstStartIsTheJobsOwn) {
  Failing world({"n0", "n1"});
  world.fail_start(v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Failed);
}

// Regression: the code's file system was being remounted when a rank died, and the job ended for
// good, with restarts left.
TEST(StartFailures, WhatWasThereForAnEarlierAttemptIsTheNodesTroubleOrTheMoments) {
  Failing world({"n0", "n1"});
  world.started("j1", 1, "n0");
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  ASSERT_EQ(world.current().number.value, 2U);
  ASSERT_EQ(world.where(), "n0") << "in place";
  world.fail_start(v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(world.current().number.value, 3U);
  EXPECT_EQ(world.where(), "n1") << "at once elsewhere";
  world.fail_start(v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued) << "after a pause on these two";
  for (int more = 0; more < 2; ++more) {
    world.wait(seconds(60));
    world.fail_start(v1::START_FAILURE_LAUNCH);
  }
  EXPECT_EQ(world.job("j1").phase, JobPhase::Failed) << "five attempts without a step";
}

TEST(StartFailures, APauseDoublesToItsLimitAndThenTheBudgetEnds) {
  Failing world({"n0"});
  world.limits.start_pause_max = seconds(30);
  for (const int pause : {10, 20, 30, 30}) {
    const std::uint32_t before = world.current().number.value;
    world.fail_start(v1::START_FAILURE_DISK);
    ASSERT_EQ(world.job("j1").phase, JobPhase::Queued);
    const Proposal proposal = propose(world.ledger, world.presence, world.now, world.limits);
    EXPECT_EQ(proposal.wake_at, world.now.boot + seconds(pause))
        << "it wakes for this alone, and nothing is asked before";
    EXPECT_TRUE(proposal.inputs.empty());
    world.wait(seconds(pause) - Duration(1));
    EXPECT_EQ(world.current().number.value, before);
    world.wait(Duration(1));
    EXPECT_EQ(world.current().number.value, before + 1);
  }
  world.fail_start(v1::START_FAILURE_DISK);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Failed);
  EXPECT_EQ(world.job("j1").verdict->cls, FailureClass::Node);
}

// On a clock that was set back by an hour, twenty seconds would become an hour.
TEST(StartFailures, AClockThatWasSetBackDoesNotMakeThePauseLonger) {
  Failing world({"n0"});
  world.fail_start(v1::START_FAILURE_DISK);
  world.now.wall -= std::chrono::hours(1);
  world.settle();
  EXPECT_EQ(world.current().number.value, 2U);
}

TEST(StartFailures, GoneAndAPortOfTheRangeAreTriedAgainAtOnceInPlace) {
  for (const v1::StartFailure why : {v1::START_FAILURE_GONE, v1::START_FAILURE_PORT}) {
    Failing world({"n0", "n1"});
    world.fail_start(why);
    EXPECT_EQ(world.current().number.value, 2U) << why;
    EXPECT_EQ(world.where(), "n0") << why;
  }
}

TEST(StartFailures, ANodeThatSaysItIsItsOwnTroubleIsNotTheJobsFault) {
  Failing world({"n0", "n1"});
  world.fail_start(v1::START_FAILURE_NODE);
  EXPECT_EQ(world.job("j1").attempts[0].verdict->cls, FailureClass::Node);
  EXPECT_EQ(world.where(), "n1");
}

// n0, then n1, then both are avoided: the one whose pause ends first is tried first.
TEST(StartFailures, EveryOtherNodeComesBeforeThoseThatFailed) {
  Failing world({"n0", "n1"});
  world.fail_start(v1::START_FAILURE_DISK);
  EXPECT_EQ(world.where(), "n1");
  world.wait(seconds(4));
  world.fail_start(v1::START_FAILURE_DISK);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
  world.wait(seconds(6));
  EXPECT_EQ(world.current().number.value, 3U);
  EXPECT_EQ(world.where(), "n0");
}

// A job that waits for devices keeps its position in the queue, whether it has a pause or not.
TEST(StartFailures, WhoWaitsForDevicesIsNotPassed) {
  Failing world({"n0"});
  world.fail_start(v1::START_FAILURE_DISK);
  world.submit("j2", SmallWorld::spec("passes", 1, 1));
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
  world.submit("j3", SmallWorld::spec("waits", 1, 1));
  world.wait(seconds(20));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
  world.started("j2", 1, "n0");
  world.exited("j2", 1, "n0", 0, 0);
  world.swept("j2", 1, "n0");
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("j3").phase, JobPhase::Queued);
}

}  // namespace
}  // namespace muster::core
