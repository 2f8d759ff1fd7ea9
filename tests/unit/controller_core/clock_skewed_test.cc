// A node's wall clock is off: recorded once for each attempt and node, and nothing follows from it.
#include <gtest/gtest.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

struct Skewed : SmallWorld {
  Skewed() {
    node("n0", 1);
    node("n1", 1);
    submit("j1", spec("train", 2, 1));
  }
  Decision skewed(std::uint32_t attempt, const std::string& on, int seconds,
                  const std::string& instance = "i1") {
    v1::Fact what = fact("j1", attempt);
    what.mutable_node_clock_skewed()->mutable_ahead()->set_seconds(seconds);
    return report(on, std::move(what), instance);
  }
};

TEST(ClockSkewed, IsRecordedOnceForEachNodeOfAnAttempt) {
  Skewed world;
  EXPECT_EQ(world.skewed(1, "n0", 75).events.size(), 1U);
  EXPECT_TRUE(world.skewed(1, "n0", 80).events.empty()) << "known";
  EXPECT_EQ(world.skewed(1, "n1", -90).events.size(), 1U);
  const AttemptRecord& attempt = *world.job("j1").current();
  EXPECT_EQ(attempt.part(NodeName("n0"))->clock_ahead, std::chrono::seconds(75));
  EXPECT_EQ(attempt.part(NodeName("n1"))->clock_ahead, -std::chrono::seconds(90));
  EXPECT_EQ(attempt.state, AttemptState::Live) << "nothing follows from it";
}

TEST(ClockSkewed, IsTakenFromThePlacedInstanceAloneAlsoLate) {
  Skewed world;
  EXPECT_TRUE(world.skewed(1, "n0", 75, "another").events.empty());
  EXPECT_TRUE(world.skewed(7, "n0", 75).events.empty()) << "no such attempt";
  EXPECT_TRUE(world.skewed(1, "n0", 60).events.empty()) << "not more than a minute";
  world.exited("j1", 1, "n0", 0, 3);
  world.swept("j1", 1, "n0", v1::SWEPT_WHY_STOPPED);
  EXPECT_EQ(world.skewed(1, "n0", 75).events.size(), 1U) << "reported again after a reconnect";
  world.swept("j1", 1, "n1", v1::SWEPT_WHY_STOPPED);
  ASSERT_EQ(world.job("j1").current()->number, AttemptNo(2));
  EXPECT_EQ(world.skewed(1, "n1", 75).events.size(), 1U) << "of an old attempt, for its history";
  EXPECT_FALSE(world.job("j1").current()->part(NodeName("n1"))->clock_ahead);
}

}  // namespace
}  // namespace muster::core
