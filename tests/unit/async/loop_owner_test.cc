// A loop stops the process when what belongs to it is used elsewhere. Each case that dies runs in a
// child.
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "common/async/loop.h"

namespace muster::async {
namespace {

class LoopOwner : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

constexpr const char* kElsewhere = "broken invariant .*what belongs to a loop was used elsewhere";

TEST_F(LoopOwner, ATaskAndATimerAreOnTheirLoop) {
  Loop loop("test");
  Timer timer(loop, "timer");
  std::promise<void> fired;
  loop.post("arm", [&] {
    loop.assert_on();
    timer.arm(std::chrono::milliseconds(1), [&] {
      loop.assert_on();
      fired.set_value();
    });
  });
  fired.get_future().wait();
  loop.stop();
}

TEST_F(LoopOwner, AnotherThreadIsNotOnTheLoop) {
  EXPECT_DEATH(
      {
        Loop loop("test");
        loop.assert_on();
      },
      kElsewhere);
}

TEST_F(LoopOwner, AnotherLoopIsNotThisLoop) {
  EXPECT_DEATH(
      {
        Loop one("one");
        Loop other("other");
        one.post("wrong", [&] { other.assert_on(); });
        one.stop();
      },
      kElsewhere);
}

TEST_F(LoopOwner, NobodyIsOnALoopThatHasStopped) {
  EXPECT_DEATH(
      {
        Loop loop("test");
        loop.stop();
        loop.assert_on();
      },
      kElsewhere);
}

TEST_F(LoopOwner, IsIdleBeforeTheFirstTaskAndAfterStop) {
  Loop loop("test");
  loop.assert_idle();
  loop.post("work", [] {});
  loop.stop();
  loop.assert_idle();
}

TEST_F(LoopOwner, IsNotIdleBetweenThem) {
  EXPECT_DEATH(
      {
        Loop loop("test");
        loop.post("work", [] {});
        loop.assert_idle();
      },
      "broken invariant .*while the loop ran");
}

}  // namespace
}  // namespace muster::async
