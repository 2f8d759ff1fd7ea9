#include "controller/core/horizon.h"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr BootTime kStart{std::chrono::hours(1)};

TEST(Horizon, IsThePresentWhenNothingIsLeftOver) {
  Horizon horizon{{}};
  EXPECT_EQ(horizon.judge(kStart, {}).until, kStart);
  EXPECT_EQ(horizon.next(kStart + seconds(5)), kStart + seconds(5));
  EXPECT_EQ(horizon.next({}), std::nullopt);
}

TEST(Horizon, IsTheArrivalOfTheFirstItemThatIsLeftOver) {
  Horizon horizon{{}};
  EXPECT_EQ(horizon.judge(kStart, kStart - seconds(3)).until, kStart - seconds(3));
  EXPECT_EQ(horizon.judge(kStart, {}).until, kStart);
}

TEST(Horizon, StaysBeforeAStallUntilTheInboxHadTimeToFill) {
  Horizon horizon{{.stall_after = milliseconds(100), .wait_max = seconds(1)}};
  ASSERT_EQ(horizon.judge(kStart, {}).until, kStart);
  horizon.set_timer(kStart + seconds(1));
  const BootTime late = kStart + seconds(31);
  const Horizon::Judgement judgement = horizon.judge(late, {});
  EXPECT_EQ(judgement.until, kStart);
  EXPECT_EQ(judgement.late, seconds(30));
  EXPECT_EQ(horizon.next({}), late + seconds(1)) << "it comes back by itself";
  EXPECT_EQ(horizon.next(late + seconds(9)), late + seconds(9));
  EXPECT_EQ(horizon.judge(late + milliseconds(999), {}).until, kStart);
  const Horizon::Judgement after = horizon.judge(late + seconds(1), {});
  EXPECT_EQ(after.until, late + seconds(1));
  EXPECT_FALSE(after.late) << "the same stall is reported once";
}

TEST(Horizon, WaitsNoLongerThanTheStallLasted) {
  Horizon horizon{{.stall_after = milliseconds(100), .wait_max = seconds(1)}};
  horizon.set_timer(kStart);
  EXPECT_TRUE(horizon.judge(kStart + milliseconds(200), {}).late);
  EXPECT_EQ(horizon.next({}), kStart + milliseconds(400));
}

TEST(Horizon, TakesNoDelayForAStallThatTheTimerDoesNotShow) {
  Horizon horizon{{.stall_after = milliseconds(100), .wait_max = seconds(1)}};
  horizon.set_timer(kStart);
  EXPECT_FALSE(horizon.judge(kStart + milliseconds(100), {}).late);
  horizon.set_timer({});
  EXPECT_FALSE(horizon.judge(kStart + seconds(100), {}).late);
}

}  // namespace
}  // namespace muster::core
