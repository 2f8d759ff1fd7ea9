#include "common/async/loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <thread>

#include "common/async/gate.h"

namespace muster::async {
namespace {

using std::chrono::milliseconds;
constexpr std::chrono::seconds kPatience(10);

TEST(Loop, RunsInOrderOnItsOwnThreadAndCountsByName) {
  Loop loop("test");
  std::vector<int> order;
  bool there = false;
  for (int i = 0; i < 100; ++i) loop.post("count", [&order, i] { order.push_back(i); });
  loop.post("where", [&] { there = loop.on_this(); });
  loop.stop();
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_TRUE(there);
  EXPECT_FALSE(loop.on_this());
  const auto stats = loop.stats();
  ASSERT_EQ(stats.size(), 2u);
  EXPECT_EQ(stats[0].name, "count");
  EXPECT_EQ(stats[0].count, 100u);
  EXPECT_EQ(stats[1].count, 1u);
}

TEST(Loop, StopRunsWhatWasPostedBeforeAndDropsWhatComesAfter) {
  Loop loop("test");
  int ran = 0;
  for (int i = 0; i < 1'000; ++i) loop.post("work", [&] { ++ran; });
  loop.stop();
  EXPECT_EQ(ran, 1'000);
  auto kept = std::make_shared<int>(1);
  loop.post("late", [kept, &ran] { ran += *kept; });
  EXPECT_EQ(ran, 1'000);
  EXPECT_EQ(kept.use_count(), 1);  // the captures are destroyed, too
}

TEST(Loop, StopDoesNotWaitForTimers) {
  Loop loop("test");
  Timer timer(loop, "far");
  loop.post("arm",
            [&] { timer.arm(std::chrono::hours(1), [] { FAIL() << "an hour has not passed"; }); });
  loop.stop();
}

TEST(Timer, FiresOnceAndArmingAgainReplaces) {
  Loop loop("test");
  Timer timer(loop, "timer");
  std::promise<int> fired;
  loop.post("arm", [&] {
    timer.arm(milliseconds(1), [&] { fired.set_value(1); });
    timer.arm(milliseconds(2), [&] { fired.set_value(2); });
  });
  auto which = fired.get_future();
  ASSERT_EQ(which.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(which.get(), 2);
  loop.stop();
}

// The wait has expired, and its handler is in the queue after the task that cancels.
TEST(Timer, CancelHoldsEvenWhenItHasExpired) {
  Loop loop("test");
  Timer timer(loop, "timer");
  std::promise<void> after;
  loop.post("arm", [&] {
    timer.arm(Duration::zero(), [] { FAIL() << "it was cancelled"; });
    loop.post("cancel", [&] {
      timer.cancel();
      loop.post("after", [&] { after.set_value(); });
    });
    const auto until = std::chrono::steady_clock::now() + milliseconds(5);
    while (std::chrono::steady_clock::now() < until) {
    }
  });
  ASSERT_EQ(after.get_future().wait_for(kPatience), std::future_status::ready);
  loop.stop();
}

TEST(Signals, ArriveOnTheLoop) {
  Loop loop("test");
  std::promise<int> got;
  Signals signals(loop, {SIGUSR1}, [&](int number) { got.set_value(number); });
  std::raise(SIGUSR1);
  auto number = got.get_future();
  ASSERT_EQ(number.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(number.get(), SIGUSR1);
  loop.stop();
}

TEST(Gate, WaitsForTheLastAndRefusesNewOnesOnceClosed) {
  Gate gate;
  ASSERT_TRUE(gate.enter());
  ASSERT_TRUE(gate.enter());
  gate.close();
  EXPECT_FALSE(gate.enter());
  std::thread waiter([&] { gate.wait(); });
  gate.leave();
  EXPECT_EQ(gate.inside(), 1u);
  gate.leave();
  waiter.join();
  EXPECT_EQ(gate.inside(), 0u);
}

}  // namespace
}  // namespace muster::async
