// An agent whose state directory was put back from an older copy, or is another's copy: same instance, same boot, and not what it had started.
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

v1::HeldAttempt held(const std::string& job, std::uint32_t attempt) {
  v1::HeldAttempt one;
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

constexpr const char* kCause = "node 'n0' came back without the run directory of attempt 1: its agent's state directory is another or an older one";

TEST(RestoredAgent, WhatItHadStartedIsStoppedAndSweptBeforeItStartsAgain) {
  Restored world;
  world.started("j1", 1, "n0");
  world.started("j1", 1, "n1");
  world.node("n0", 1);
  EXPECT_EQ(world.first().broke_cause, kCause);
  EXPECT_EQ(desired(world.ledger, NodeName("n0")), std::vector{(Assignment{.job = JobId("j1"), .attempt = AttemptNo(1), .want = Want::Stop})});
  // What the rest of the ring says when its peer is killed by the sweep is not the fault.
  world.exited("j1", 1, "n1", 1, 1);
  world.swept("j1", 1, "n1");
  EXPECT_EQ(world.job("j1").attempts.size(), 1U) << "its devices may still be in use on n0";
  EXPECT_TRUE(world.ledger.device_holders.at(NodeName("n0")).contains(0));
  world.swept("j1", 1, "n0", "never started");
  ASSERT_TRUE(world.first().verdict);
  EXPECT_EQ(world.first().verdict->cls, FailureClass::Node);
  EXPECT_EQ(world.first().verdict->reason, kCause);
  ASSERT_EQ(world.job("j1").attempts.size(), 2U);
}

TEST(RestoredAgent, OneThatHoldsItGoesOn) {
  Restored world;
  world.started("j1", 1, "n0");
  world.node("n0", 1, "b1", "i1", {held("j1", 1)});
  EXPECT_EQ(world.first().state, AttemptState::Live);
}

TEST(RestoredAgent, OneThatHadNotStartedItGetsItsOrder) {
  Restored world;
  world.node("n0", 1);
  EXPECT_EQ(world.first().state, AttemptState::Live);
  EXPECT_EQ(desired(world.ledger, NodeName("n0")), std::vector{(Assignment{.job = JobId("j1"), .attempt = AttemptNo(1), .want = Want::Run})});
}

}  // namespace
}  // namespace muster::core
