#include "agent/logs/scan_threads.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using Lane = ScanThreads::Lane;

constexpr Lane kOne{ScanThreads::LaneKind::Device, 1}, kTwo{ScanThreads::LaneKind::Device, 2},
    kRun{ScanThreads::LaneKind::Run, 1};

// A piece of work that reports its begin, and ends when the test releases it.
class Piece {
 public:
  ScanThreads::Work work() {
    return [begun = begun_, go = go_->get_future().share(), ended = ended_]() {
      begun->set_value();
      go.wait();
      ended->set_value();
    };
  }
  [[nodiscard]] bool begins() { return begun_future_.wait_for(20s) == std::future_status::ready; }
  [[nodiscard]] bool begun() { return begun_future_.wait_for(0s) == std::future_status::ready; }
  void let_go() { go_->set_value(); }
  [[nodiscard]] bool ends() { return ended_future_.wait_for(20s) == std::future_status::ready; }

 private:
  using Signal = std::shared_ptr<std::promise<void>>;
  const Signal begun_ = std::make_shared<std::promise<void>>(),
               go_ = std::make_shared<std::promise<void>>(),
               ended_ = std::make_shared<std::promise<void>>();
  std::future<void> begun_future_ = begun_->get_future(), ended_future_ = ended_->get_future();
};

TEST(ScanThreads, a_lane_is_in_order_and_holds_up_no_other) {
  ScanThreads threads(4);
  Piece first, second, other, run;
  threads.run(kOne, first.work());
  ASSERT_TRUE(first.begins());
  threads.run(kOne, second.work());
  threads.run(kTwo, other.work());
  threads.run(kRun, run.work());
  ASSERT_TRUE(other.begins());
  ASSERT_TRUE(run.begins()) << "numbers of runs and of devices are not the same";
  EXPECT_TRUE(threads.at_work(kOne));
  EXPECT_FALSE(second.begun());
  first.let_go();
  EXPECT_TRUE(second.begins());
  for (Piece* piece : {&second, &other, &run}) piece->let_go();
  for (Piece* piece : {&first, &second, &other, &run}) EXPECT_TRUE(piece->ends());
}

TEST(ScanThreads, beyond_the_bound_lanes_wait_and_take_turns) {
  ScanThreads threads(1);
  Piece hung, waits, behind;
  threads.run(kOne, hung.work());
  ASSERT_TRUE(hung.begins());
  threads.run(kOne, behind.work());
  threads.run(kTwo, waits.work());
  EXPECT_FALSE(threads.at_work(kTwo));
  hung.let_go();
  EXPECT_TRUE(waits.begins());
  EXPECT_FALSE(behind.begun()) << "a lane that has had a turn is behind the one that has not";
  waits.let_go();
  EXPECT_TRUE(behind.begins());
  behind.let_go();
  EXPECT_TRUE(behind.ends());
}

TEST(ScanThreads, when_all_hang_no_thread_is_added_and_an_answer_serves_the_rest) {
  ScanThreads threads(2);
  Piece one, two, waits, waits_too;
  threads.run(kOne, one.work());
  threads.run(kTwo, two.work());
  ASSERT_TRUE(one.begins());
  ASSERT_TRUE(two.begins());
  EXPECT_EQ(threads.why_waiting(),
            "all 2 threads for such scans wait for file systems that do not answer");
  threads.run(kRun, waits.work());
  threads.run({ScanThreads::LaneKind::Run, 2}, waits_too.work());
  threads.kick();
  EXPECT_FALSE(threads.at_work(kRun));
  EXPECT_FALSE(waits.begun());
  two.let_go();
  ASSERT_TRUE(waits.begins());
  EXPECT_FALSE(waits_too.begun()) << "one thread is left for both";
  waits.let_go();
  EXPECT_TRUE(waits_too.begins());
  for (Piece* piece : {&one, &waits_too}) piece->let_go();
  for (Piece* piece : {&one, &two, &waits, &waits_too}) EXPECT_TRUE(piece->ends());
}

TEST(ScanThreads, close_drops_what_has_not_begun_and_waits_for_nobody) {
  Piece hung;
  const auto destroyed = std::make_shared<std::promise<std::thread::id>>();
  std::future<std::thread::id> by = destroyed->get_future();
  {
    ScanThreads threads(1);
    threads.run(kOne, hung.work());
    ASSERT_TRUE(hung.begins());
    std::shared_ptr<void> captured(
        nullptr, [destroyed](void*) { destroyed->set_value(std::this_thread::get_id()); });
    threads.run(kTwo, [captured = std::move(captured)] { ADD_FAILURE() << "dropped"; });
    threads.close();
    ASSERT_EQ(by.wait_for(20s), std::future_status::ready) << "its captures went with it";
    EXPECT_NE(by.get(), std::this_thread::get_id()) << "one may be a file that hangs";
    threads.run(kTwo, [] { ADD_FAILURE() << "closed"; });
  }
  hung.let_go();  // it finds no queue any more
  EXPECT_TRUE(hung.ends());
}

}  // namespace
}  // namespace muster::agent
