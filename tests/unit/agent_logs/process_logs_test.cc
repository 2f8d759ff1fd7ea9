#include "agent/logs/process_logs.h"

#include "tests/unit/agent_logs/subject_ground.h"

namespace muster::agent {
namespace {

class ProcessLogsTest : public SubjectTest {
 protected:
  void watch() {
    ProcessLogs::Readers readers;
    readers[0] = std::make_unique<PlogReader>(tree_);
    logs_ = std::make_unique<ProcessLogs>(tools(), std::move(readers));
  }
  void write(const std::string& text) {
    std::filesystem::create_directories(tree_ / "debug/plog");
    std::ofstream(tree_ / "debug/plog/plog-7_1.log", std::ios::app) << text;
  }

  const std::filesystem::path tree_ = layout_.plog_dir(0);
  std::unique_ptr<ProcessLogs> logs_;
};

constexpr const char* kCause = "[ERROR] RuntimeError: NPU out of memory. Tried to allocate 2 GiB\n";

TEST_F(ProcessLogsTest, TheBetterLineExplainsAFailure) {
  watch();
  write(kCause);
  RankEnding ending = ending_of(0, true);
  EXPECT_TRUE(logs_->explain(ending));
  EXPECT_TRUE(ending.answer.evidence.starts_with("plog-7_1.log: [ERROR]"))
      << ending.answer.evidence;
  EXPECT_GT(ending.quality, 0);
  RankEnding again = ending_of(0, true);
  EXPECT_TRUE(logs_->explain(again));
  EXPECT_EQ(again.answer.evidence, "") << "its process log is not read any more";
}

TEST_F(ProcessLogsTest, AGoodEndAndABetterLineOfTheRanksOwnStand) {
  watch();
  write(kCause);
  RankEnding good = ending_of(0, false);
  EXPECT_TRUE(logs_->explain(good));
  EXPECT_EQ(good.answer.evidence, "");
  RankEnding better = ending_of(0, true);
  better.answer.evidence = "its own";
  better.quality = 1000;
  EXPECT_TRUE(logs_->explain(better));
  EXPECT_EQ(better.answer.evidence, "its own");
}

TEST_F(ProcessLogsTest, TheBoundHoldsAtAPollAndLessStaysWhenTheDiskIsFull) {
  options_.plog_cap = 2 << 20;
  watch();
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < 4; ++i) {
    std::filesystem::create_directories(tree_ / "debug/plog");
    std::ofstream(tree_ / "debug/plog" / ("plog-7_" + std::to_string(i) + ".log")) << block;
  }
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(tree_ / "debug/plog"),
                         std::filesystem::directory_iterator());
  };
  logs_->poll(system_clock().now());
  EXPECT_EQ(files(), 2);
  logs_->free_room();
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace muster::agent
