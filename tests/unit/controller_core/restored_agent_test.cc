// An agent whose state directory was restored from an older copy, or is another agent's copy: same
// instance, same boot, but without what it had started.
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

v1::PresentAttempt present(const std::string& job, std::uint32_t attempt) {
  v1::PresentAttempt one;
  one.set_job_id(job);
  one.set_attempt(attempt);
  return one;
}

struct Restored : SmallWorld {
  Restored() {
    node("n0", 1);
    node("n1", 1);
    submit("j1", spec("train", 2, 1));
  }
  const AttemptRecord& first() { return job("j1").attempts.front(); }
};

constexpr const char* kCause =
    "node 'n0' came back without the run directory of attempt 1: its agent's state directory is "
    "another or an older one";

TEST(RestoredAgent, WhatItHadStartedIsStoppedAndSweptBeforeItStartsAgain) {
  Restored world;
  world.started("j1", 1, "n0");
  world.started("j1", 1, "n1");
  world.node("n0", 1);
  EXPECT_EQ(world.first().broke_cause, kCause);
  EXPECT_EQ(
      desired(world.ledger, NodeName("n0")),
      std::vector{(Assignment{.job = JobId("j1"), .attempt = AttemptNo(1), .want = Want::Stop})});
  // What the rest of the ring logs when the sweep kills its peer is not the fault.
  world.exited("j1", 1, "n1", 1, 1);
  world.swept("j1", 1, "n1");
  EXPECT_EQ(world.job("j1").attempts.size(), 1U) << "its devices may still be in use on n0";
  EXPECT_TRUE(world.ledger.indexes.device_holders.at(NodeName("n0")).contains(0));
  world.swept("j1", 1, "n0", v1::SWEPT_WHY_NEVER_STARTED);
  ASSERT_TRUE(world.first().verdict);
  EXPECT_EQ(world.first().verdict->cls, FailureClass::Node);
  EXPECT_EQ(world.first().verdict->reason, kCause);
  ASSERT_EQ(world.job("j1").attempts.size(), 2U);
}

TEST(RestoredAgent, OneThatHoldsItGoesOn) {
  Restored world;
  world.started("j1", 1, "n0");
  world.node("n0", 1, "b1", "i1", {present("j1", 1)});
  EXPECT_EQ(world.first().state, AttemptState::Live);
}

TEST(RestoredAgent, OneThatHadNotStartedItGetsItsOrder) {
  Restored world;
  world.node("n0", 1);
  EXPECT_EQ(world.first().state, AttemptState::Live);
  EXPECT_EQ(
      desired(world.ledger, NodeName("n0")),
      std::vector{(Assignment{.job = JobId("j1"), .attempt = AttemptNo(1), .want = Want::Run})});
}

// Regression: the state directory was copied to another machine, and the first agent died. The
// Hello of the copy seemed to be that machine's restart. The attempt counted as ended and the next
// one was placed, while the first machine's ranks still ran.
struct Copied : SmallWorld {
  Copied() {
    node("n0", 1);
    v1::JobSpec one = spec("train", 1, 1);
    one.mutable_recovery()->mutable_orphan_grace()->set_seconds(60);
    submit("j1", one);
    started("j1", 1, "n0");
    pass(std::chrono::minutes(10));
    see(HeartbeatHeard{.node = NodeName("n0"), .connection = ConnectionId(connections)});
    see(HeartbeatAcked{.node = NodeName("n0"), .connection = ConnectionId(connections)});
    see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(connections)});
    pass(std::chrono::seconds(30));
  }
  Decision hello(Duration uptime, const std::string& boot = "b2") {
    return put(RegisterNode{.node = NodeName("n0"),
                            .instance = InstanceId("i1"),
                            .boot_id = BootId(boot),
                            .inventory = inventory(1, "n0"),
                            .version = "test",
                            .uptime = uptime});
  }
};

TEST(CopiedAgent, ABootFromBeforeTheLastWordOfTheFirstIsAnotherMachine) {
  Copied world;
  const Decision copy = world.hello(std::chrono::hours(3));
  ASSERT_TRUE(copy.refusal);
  EXPECT_EQ(copy.refusal->code, ErrorCode::Conflict);
  EXPECT_NE(copy.refusal->message.find("attempt 1 of job 'train' may still run on another machine "
                                       "of this name (instance 'i1', boot 'b1')"),
            std::string::npos)
      << copy.refusal->message;
  EXPECT_FALSE(world.hello(std::chrono::hours(3), "b1").refusal) << "the first machine itself";
  EXPECT_EQ(world.job("j1").current()->state, AttemptState::Live);
}

TEST(CopiedAgent, HasTheNameOnceNothingOfTheFirstCanRun) {
  Copied world;
  ASSERT_TRUE(world.hello(std::chrono::hours(3)).refusal);
  world.pass(std::chrono::minutes(2));
  world.settle();
  EXPECT_FALSE(world.hello(std::chrono::hours(3)).refusal);
  Copied declared;
  declared.put(DeclareNodeDead{.node = NodeName("n0"), .reason = "off"});
  EXPECT_FALSE(declared.hello(std::chrono::hours(3)).refusal);
}

// The controller was restarted in the meantime, and has received nothing from the first machine.
TEST(CopiedAgent, ABootFromBeforeTheFirstRegisteredIsAnotherMachine) {
  const auto restart = [](Copied& world) { world.presence = {.listening_since = world.now.boot}; };
  Copied world;
  restart(world);
  ASSERT_TRUE(world.hello(std::chrono::hours(3)).refusal);
  EXPECT_FALSE(world.hello(std::chrono::hours(3), "b1").refusal) << "the first machine itself";
  for (const Duration uptime :
       {Duration(std::chrono::seconds(28)), Duration(std::chrono::minutes(11))}) {
    Copied restarted;
    restart(restarted);
    const Decision back = restarted.hello(uptime);
    EXPECT_FALSE(back.refusal) << "the wall clock may have been set by some seconds; "
                               << back.refusal->message;
  }
}

// It had registered long before, and both machines were booted since. What it runs was started when
// the other machine was already up.
TEST(CopiedAgent, ABootFromBeforeItsRunsWereStartedIsAnotherMachine) {
  struct Late : SmallWorld {
    Late() {
      node("n0", 1);
      pass(std::chrono::hours(24));
      see(HeartbeatHeard{.node = NodeName("n0"), .connection = ConnectionId(connections)});
      v1::JobSpec one = spec("train", 1, 1);
      one.mutable_recovery()->mutable_orphan_grace()->set_seconds(7'200);
      submit("j1", one);
      started("j1", 1, "n0");
      pass(std::chrono::minutes(10));
      presence = {.listening_since = now.boot};
    }
    Decision hello(Duration uptime) {
      return put(RegisterNode{.node = NodeName("n0"),
                              .instance = InstanceId("i1"),
                              .boot_id = BootId("b2"),
                              .inventory = inventory(1, "n0"),
                              .version = "test",
                              .uptime = uptime});
    }
  };
  Late world;
  EXPECT_TRUE(world.hello(std::chrono::minutes(15)).refusal);
  Late restarted;
  EXPECT_FALSE(restarted.hello(std::chrono::minutes(5)).refusal);
}

TEST(CopiedAgent, ARestartBehindTheLastWordIsTheSameMachine) {
  // Down at once, and up within a moment; the agent connected a little later. Then a machine whose
  // boot clock is slow or fast by some seconds in ten days.
  for (const auto& [after, uptime] :
       {std::pair<Duration, Duration>{std::chrono::seconds(0), std::chrono::seconds(28)},
        {std::chrono::seconds(0), std::chrono::seconds(34)},
        {std::chrono::hours(240), std::chrono::hours(240) + std::chrono::seconds(60)}}) {
    Copied world;
    if (after > Duration::zero())
      world.ledger.jobs.at(JobId("j1"))
          .spec.mutable_recovery()
          ->mutable_orphan_grace()
          ->set_seconds(40 * 86'400);
    world.pass(after);
    const Decision back = world.hello(uptime);
    EXPECT_FALSE(back.refusal) << back.refusal->message;
  }
}

}  // namespace
}  // namespace muster::core
