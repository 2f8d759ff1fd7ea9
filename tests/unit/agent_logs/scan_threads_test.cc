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
  EXPECT_EQ(threads.why_waiting(kRun),
            "all 2 threads for such scans wait for file systems that do not answer");
  threads.run(kRun, waits.work());
  threads.run({.kind = ScanThreads::LaneKind::Run, .number = 2}, waits_too.work());
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

// Regression: after a restart of the agent, 33 runs on one dead file system had all 32 threads.
TEST(ScanThreads, lanes_of_unknown_file_systems_of_one_mount_share_a_bound) {
  ScanThreads threads(32);
  const auto lane = [](std::uint64_t number, std::uint64_t mount) {
    return Lane{.kind = ScanThreads::LaneKind::Run, .number = number, .mount = mount};
  };
  std::vector<Piece> hung(ScanThreads::kUnknownOfMount);
  for (std::size_t i = 0; i < hung.size(); ++i) {
    threads.run(lane(i, 1), hung[i].work());
    ASSERT_TRUE(hung[i].begins());
  }
  Piece waits, of_other_mount, of_device;
  const Lane last = lane(hung.size(), 1);
  threads.run(last, waits.work());
  threads.run(lane(100, 2), of_other_mount.work());
  threads.run(kOne, of_device.work());
  EXPECT_TRUE(of_other_mount.begins());
  EXPECT_TRUE(of_device.begins());
  for (Piece* piece : {&of_other_mount, &of_device}) {
    piece->let_go();
    EXPECT_TRUE(piece->ends());
  }
  threads.kick();
  EXPECT_FALSE(waits.begun());
  EXPECT_EQ(threads.why_waiting(last),
            "16 first scans of what is mounted there have no answer yet");
  EXPECT_EQ(threads.why_waiting(kOne), "");
  hung.front().let_go();
  EXPECT_TRUE(waits.begins());
  for (std::size_t i = 1; i < hung.size(); ++i) hung[i].let_go();
  waits.let_go();
  for (Piece& piece : hung) EXPECT_TRUE(piece.ends());
  EXPECT_TRUE(waits.ends());
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
