// Lines of a rank's log -> what is reported of its steps. The grammar's own fixtures are in
// tests/fixtures/logs; this tests what several lines mean together.
#include "agent/logs/rank_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::agent {
namespace {

class RankReaderTest : public testing::Test {
 protected:
  void begin(const std::string& grammar, std::uint32_t world_size = 16) {
    v1::Watching watching;
    watching.set_grammar(grammar);
    watching.set_world_size(world_size);
    auto patterns = Patterns::make(watching);
    ASSERT_TRUE(patterns.has_value());
    patterns_ = *patterns;
    restart();
  }
  void restart() {
    reader_.reset();
    auto file = LogFile::open(dir_.path() / "rank-0.log", dir_.path() / "rank-0.cursor");
    ASSERT_TRUE(file.has_value());
    reader_ = std::make_unique<RankReader>(std::shared_ptr<LogFile>(std::move(*file)), patterns_);
  }
  // "20 covers 4 loss 2.5 seconds 0.5 rate 64", one for each step line that these lines make.
  std::vector<std::string> say(const std::string& lines) {
    rank_.write(lines);
    char buffer[4096];
    auto round = reader_->read(buffer, [] {});
    EXPECT_TRUE(round.at_end && !round.trouble);
    std::vector<std::string> steps;
    for (const engine::StepLine& step : round.steps) {
      std::string text = fmt::format("{} covers {}", step.step, step.covers);
      if (step.has_loss) text += fmt::format(" loss {}", step.loss);
      if (step.seconds > 0) text += fmt::format(" seconds {}", step.seconds);
      if (step.samples_per_second > 0) text += fmt::format(" rate {}", step.samples_per_second);
      steps.push_back(std::move(text));
    }
    return steps;
  }
  using Steps = std::vector<std::string>;

  test::TempDir dir_;
  const test::Appender rank_{dir_.path() / "rank-0.log"};
  std::shared_ptr<const Patterns> patterns_;
  std::unique_ptr<RankReader> reader_;
};

TEST_F(RankReaderTest, what_was_read_before_an_error_counts) {
  begin("megatron");
  const std::filesystem::path logs = dir_.path() / "logs", log = logs / "rank-0.log";
  std::filesystem::create_directories(logs);
  const std::string line = " iteration 100/ 2000 | lm loss: 2.5 |\n";
  test::Appender(log).write(line + "more\n");
  // Without a descriptor that stays open, each read opens the log.
  auto file = LogFile::open(log, dir_.path() / "cursor", std::make_shared<io::DescriptorBudget>(0));
  ASSERT_TRUE(file.has_value());
  RankReader reader(std::shared_ptr<LogFile>(std::move(*file)), patterns_);
  std::vector<char> buffer(line.size());
  const RankReader::Round round = reader.read(buffer, [&] {
    std::filesystem::remove_all(logs);
    test::Appender(logs).write("no directory");
  });
  ASSERT_EQ(round.steps.size(), 1U);
  EXPECT_EQ(round.steps[0].step, 100);
  EXPECT_FALSE(round.at_end);
  ASSERT_TRUE(round.trouble.has_value());
  EXPECT_TRUE(round.trouble->message.ends_with("Not a directory")) << round.trouble->message;
}

TEST_F(RankReaderTest, a_line_covers_all_steps_since_the_one_before) {
  begin("megatron");
  EXPECT_EQ(say(" iteration 100/ 2000 | lm loss: 2.5 |\n iteration 200/ 2000 | lm loss: 2.4 |\n"),
            (Steps{"100 covers 0 loss 2.5", "200 covers 100 loss 2.4"}))
      << "where a resumed training began nobody has said";
  EXPECT_EQ(say(" iteration 210/ 2000 | lm loss: 2.3 |\n"), (Steps{"210 covers 10 loss 2.3"}));
  EXPECT_EQ(say(" iteration 110/ 2000 | lm loss: 2.4 |\n"), (Steps{"110 covers 0 loss 2.4"}))
      << "it went back";
}

// step_guard_test.cc describes the incident.
TEST_F(RankReaderTest, a_line_that_names_any_number_does_not_become_the_step) {
  begin("auto");
  EXPECT_EQ(say("step 1 loss 2.5\nstep 2 loss 2.4\nstep 999999999999 loss 2.3\nstep 3 loss 2.2\n"),
            (Steps{"1 covers 0 loss 2.5", "2 covers 1 loss 2.4", "3 covers 1 loss 2.2"}));
  EXPECT_EQ(say("step 999999999999/3 loss 2.3\n"), Steps{});
  EXPECT_EQ(reader_->latest()->step, 3) << "what is told when the rank ends";
}

TEST_F(RankReaderTest, over_a_restart_of_the_agent_as_well) {
  begin("megatron");
  (void)say(" iteration 100/ 2000 | lm loss: 2.5 |\n");
  ASSERT_TRUE(reader_->remember(BootTime(std::chrono::hours(1)), true).has_value());
  restart();
  EXPECT_EQ(say(" iteration 150/ 2000 | lm loss: 2.4 |\n"), (Steps{"150 covers 50 loss 2.4"}));
}

// MindFormers r0.8 and later: samples a second of one device, in a second line.
TEST_F(RankReaderTest, the_rate_belongs_to_the_step_before_it) {
  begin("mindformers");
  const std::string step =
      "{ Epoch:[  1/  2], step:[   40/ 3200], loss: 9.5, per_step_time: 500ms, lr: 9.375e-07, "
      "overflow cond: False, loss_scale: 65536.0\n";
  const std::string rate =
      "   0.6% |                                                  | 8.5 samples/s/p  3:18:43 }\n";
  EXPECT_EQ(say(rate), Steps{}) << "of no step";
  EXPECT_EQ(say(step + rate), (Steps{"40 covers 0 loss 9.5 seconds 0.5",
                                     "40 covers 0 loss 9.5 seconds 0.5 rate 136"}));
  rank_.truncate();
  EXPECT_EQ(say(rate), Steps{}) << "of a step that this log does not have";
}

// DeepSpeed: samples a second of all ranks together, by a count of steps that begins anew with the
// process.
TEST_F(RankReaderTest, the_rate_of_all_ranks_belongs_to_the_step_before_it) {
  begin("deepspeed", 1);
  const std::string rate =
      "epoch=0/micro_step=20/global_step=10, RunningAvgSamplesPerSec=61.5, "
      "CurrSamplesPerSec=62.5, MemAllocated=1.2GB, MaxMemAllocated=3.4GB\n";
  EXPECT_EQ(say(rate), Steps{}) << "of no step";
  EXPECT_EQ(say("[Rank 0] step=110, skipped=0, lr=[0.0001], mom=[(0.9, 0.999)]\n" + rate),
            (Steps{"110 covers 0", "110 covers 0 rate 62.5"}));
}

// Regression: each process of DeepSpeed prints step 0 before it loads a checkpoint. So every resume
// was reported as one that did not go on.
TEST_F(RankReaderTest, the_first_step_after_a_resume_is_not_0) {
  begin("deepspeed");
  EXPECT_EQ(say("[Rank 0] step=0, skipped=0, lr=[0.0001], mom=[(0.9, 0.999)]\n"), Steps{});
  EXPECT_EQ(say("[Rank 0] step=110, skipped=0, lr=[0.0001], mom=[(0.9, 0.999)]\n"),
            (Steps{"110 covers 0"}));
}

TEST_F(RankReaderTest, the_rate_of_one_rank_may_be_that_of_many_devices) {
  begin("mindformers", 1);
  const std::string step =
      "{ Epoch:[  1/  2], step:[   40/ 3200], loss: 9.5, per_step_time: 500ms\n";
  EXPECT_EQ(say(step + "   0.6% |      | 8.5 samples/s/p  3:18:43 }\n"),
            (Steps{"40 covers 0 loss 9.5 seconds 0.5"}));
}

// r0.6 in sink mode, four steps for each sink: the third sink prints no step.
TEST_F(RankReaderTest, the_end_of_a_sink_moves_progress_on) {
  begin("mindformers");
  const auto sink = [](const char* loss) {
    return fmt::format(
        "Per sink_size step time: 2000.0 ms, per step time: 500.0 ms, avg loss: {}\n", loss);
  };
  EXPECT_EQ(say(sink("9.5")), Steps{}) << "where a training began nobody has said";
  EXPECT_EQ(say("Epoch:[  1/  1], step:[    4/  125], loss:[2.5/2.5], time:2000.0 ms, lr:[0.]\n" +
                sink("2.5")),
            (Steps{"4 covers 0 loss 2.5", "4 covers 4 loss 2.5 seconds 0.5"}));
  EXPECT_EQ(say("Epoch:[  1/  1], step:[    8/  125], loss:[2.4/2.4], time:2000.0 ms, lr:[0.]\n" +
                sink("2.4")),
            (Steps{"8 covers 4 loss 2.4", "8 covers 4 loss 2.4 seconds 0.5"}));
  EXPECT_EQ(say(sink("2.25")), (Steps{"12 covers 4 loss 2.25 seconds 0.5"}));
  EXPECT_EQ(reader_->latest()->step, 12);
  EXPECT_EQ(reader_->latest()->total, 125);
  EXPECT_EQ(say("Epoch:[  1/  1], step:[   16/  125], loss:[2.1/2.1], time:2000.0 ms, lr:[0.]\n"),
            (Steps{"16 covers 4 loss 2.1"}));
}

// r0.3: one line for every 20 steps, 1875 steps in an epoch.
TEST_F(RankReaderTest, the_end_of_an_epoch_is_its_last_step) {
  begin("mindformers");
  EXPECT_EQ(say("Epoch:[  1/  3], step:[ 1860/ 1875], loss:[7.5/8.0], time:400.0 ms\n"
                "Epoch time: 937500.0 ms, per step time: 500.0 ms, avg loss: 8.0\n"),
            (Steps{"1860 covers 0 loss 7.5", "1875 covers 15 loss 8 seconds 0.5"}));
  EXPECT_EQ(say("Epoch:[  2/  3], step:[ 1875/ 1875], loss:[6.5/7.0], time:400.0 ms\n"
                "Epoch time: 937500.0 ms, per step time: 500.0 ms, avg loss: 7.0\n"),
            (Steps{"3750 covers 1875 loss 6.5", "3750 covers 1875 loss 6.5 seconds 0.5"}));
  EXPECT_EQ(say("Epoch time: 937500.0 ms, per step time: 500.0 ms, avg loss: 6.0\nEpoch time: "
                "937500.0 ms, per step time: 500.0 ms, avg loss: 5.0\n"),
            (Steps{"5625 covers 1875 loss 6 seconds 0.5", "5625 covers 1875 loss 6 seconds 0.5"}))
      << "never beyond the total";
}

TEST_F(RankReaderTest, a_loss_that_is_no_number_is_not_the_latest) {
  begin("megatron");
  (void)say(" iteration 100/ 2000 | lm loss: 2.5 |\n");
  EXPECT_TRUE(reader_->latest()->has_loss);
  (void)say(" iteration 200/ 2000 | number of nan iterations: 100 |\n");
  EXPECT_FALSE(reader_->latest()->has_loss);
  EXPECT_TRUE(reader_->latest()->loss_not_finite);
  ASSERT_TRUE(reader_->remember(BootTime(std::chrono::hours(1)), true).has_value());
  restart();
  EXPECT_TRUE(reader_->latest()->loss_not_finite) << "an agent that is started again knows it";
  (void)say(" iteration 300/ 2000 | number of nan iterations: 100 |\n");
  const auto evidence = reader_->evidence();
  ASSERT_TRUE(evidence.has_value());
  EXPECT_EQ(evidence->line, " iteration 200/ 2000 | number of nan iterations: 100 |");
  EXPECT_EQ(evidence->kind, v1::EVIDENCE_KIND_CAUSE);
}

TEST_F(RankReaderTest, a_trainer_that_ends_itself_for_its_loss_says_so_before_the_step) {
  begin("mindformers");
  (void)say("{ Epoch:[  1/  2], step:[   40/ 3200], loss: 9.5, per_step_time: 500ms\n");
  rank_.write("ValueError: The current value of loss is NaN, terminate training.\n");
  char buffer[4096];
  const auto round = reader_->read(buffer, [] {});
  EXPECT_TRUE(round.loss_vanished);
  EXPECT_FALSE(reader_->latest()->has_loss);
}

}  // namespace
}  // namespace muster::agent
