#include "agent/logs/training_end.h"

#include <fmt/format.h>

#include "tests/unit/agent_logs/watch_ground.h"

namespace muster::agent {
namespace {

// What a log shows about the training's end, line by line, as a reader would combine it.
std::optional<bool> log_says(const std::vector<std::string>& lines,
                             const std::string& row = "megatron") {
  v1::Watching watching;
  watching.set_grammar(row);
  const auto grammar = engine::make_grammar(watching);
  engine::StepLine latest;
  std::optional<bool> end;
  std::int64_t covers = 0;
  for (const std::string& line : lines) {
    const engine::LogLine found = (*grammar)->read(line);
    if (found.kind == engine::LineKind::Step) {
      covers = latest.step >= 0 ? found.step.step - latest.step : 0;
      latest.step = found.step.step;
      latest.total = found.step.total;
    }
    if (const auto now = end_reached(found, latest, covers)) end = now;
  }
  return end;
}

std::string iteration(int step, int total = 100) {
  return fmt::format(" iteration {}/ {} | lm loss: 2.5E+00 |", step, total);
}

TEST(TrainingEnd, IsTheLineOfTheEngineOrTheLastStep) {
  EXPECT_EQ(log_says({}), std::nullopt);
  EXPECT_EQ(log_says({iteration(50), iteration(99)}), true) << "fewer are left than a line covers";
  EXPECT_EQ(log_says({iteration(98), iteration(99)}), std::nullopt)
      << "one is left, and each has a line";
  EXPECT_EQ(log_says({iteration(99)}), std::nullopt) << "of one line nobody knows what it covers";
  EXPECT_EQ(log_says({iteration(99), iteration(100)}), true);
  EXPECT_EQ(log_says({iteration(30), iteration(60), iteration(90)}), true);
  EXPECT_EQ(log_says({iteration(30), iteration(60)}), std::nullopt);
  EXPECT_EQ(log_says({iteration(40), "[after training is done] datetime: 2024-03-01 11:00:03 "}),
            true)
      << "the engine's own word";
  EXPECT_EQ(log_says({"[after training is done] datetime: 2024-03-01 11:00:03 "}), true)
      << "resumed at the end, or no line came due";
  EXPECT_EQ(log_says({"skipping training (--skip-train is on) ...",
                      " validation loss at iteration 40 | lm loss value: 2.3E+00 |"}),
            true);
  EXPECT_EQ(log_says({iteration(100),
                      " validation loss at iteration 100 on test set | lm loss value: 2.3E+00 |"}),
            true)
      << "evaluation after training";
  EXPECT_EQ(log_says({" iteration 7/ 0 | a: b |"}), std::nullopt);
}

TEST(TrainingEnd, AnEarlyEndIsNone) {
  EXPECT_EQ(
      log_says({iteration(40), "[exiting program at iteration 40] datetime: 2024-03-01 11:00:00 "}),
      false);
  EXPECT_EQ(log_says({iteration(30), iteration(60), iteration(90),
                      "[exiting program after receiving SIGTERM.] datetime: 2024-03-01 11:00:00 "}),
            false)
      << "somewhere in the last interval, and not at its end";
  EXPECT_EQ(log_says({iteration(100),
                      "[exiting program at iteration 100] datetime: 2024-03-01 11:00:00 "}),
            true)
      << "an interval that ends with the training";
  EXPECT_EQ(log_says({"[exiting program at iteration 40] datetime: 2024-03-01 11:00:00 "}), false);
}

TEST(TrainingEnd, OfMindFormersIsTheEndOfItsLastEpoch) {
  const std::string head = "2023-12-04 10:22:31,118 - mindformers[callback.py:314] - INFO - ";
  const auto line = [&](int epoch, int step) {
    return fmt::format(
        "{}{{ Epoch:[{:3d}/  2], step:[{:5d}/   20], loss: 9.844, per_step_time: 1873ms, lr: "
        "9.375e-07",
        head, epoch, step);
  };
  EXPECT_EQ(log_says({line(1, 20), line(2, 18)}, "mindformers"), true)
      << "two left, a line of eighteen";
  EXPECT_EQ(log_says({line(2, 2), line(2, 4)}, "mindformers"), std::nullopt);
  EXPECT_EQ(log_says({line(2, 18), line(2, 20)}, "mindformers"), true);
  EXPECT_EQ(log_says({line(1, 20), head + ".........Training Over!............."}, "mindformers"),
            true);
  EXPECT_EQ(log_says({head + "Only_save_strategy is True, model.compile() finished, system exit! "},
                     "mindformers"),
            true);
}

class LastStep : public WatchTest {
 protected:
  void SetUp() override {
    WatchTest::SetUp();
    watching_.set_success_last_step(true);
  }
  bool ended(std::uint32_t rank) {
    return comes(run_, [rank](const Reports& reports) { return reports.ends.contains(rank); });
  }
};

TEST_F(LastStep, is_reported_of_each_rank_with_how_far_it_came) {
  add({0, 1, 2});
  const test::Appender first(log(0)), last(log(1));
  first.write("[after training is done] datetime: 2024-03-01 11:00:03 \n");
  last.write(line(39) + line(40));
  for (const std::uint32_t rank : {0u, 1u, 2u}) watch_->rank_ended(run_, RankNo(rank), false);
  ASSERT_TRUE(ended(0) && ended(1) && ended(2));
  EXPECT_TRUE(ends_[0].success_seen);
  EXPECT_FALSE(ends_[0].step);
  EXPECT_FALSE(ends_[1].success_seen);
  EXPECT_EQ(ends_[1].step, 40);
  EXPECT_EQ(ends_[1].total, 100);
  EXPECT_FALSE(ends_[2].success_seen) << "it has no log";
  EXPECT_FALSE(ends_[2].step || ends_[2].total);
}

// The end of the log was read before the agent died, and is not read again.
TEST_F(LastStep, outlives_the_agent) {
  add({0});
  const test::Appender rank(log(0));
  rank.write(line(99) + line(100));
  watch_->rank_ended(run_, RankNo(0), false);
  ASSERT_TRUE(ended(0));
  watch_->stop();
  watch_.reset();
  {
    const std::scoped_lock lock(mutex_);
    ends_.clear();
  }
  start();
  add({0});
  watch_->rank_ended(run_, RankNo(0), false);
  ASSERT_TRUE(ended(0));
  EXPECT_TRUE(ends_[0].success_seen);
  EXPECT_EQ(ends_[0].step, 100);
  EXPECT_EQ(ends_[0].total, 100);
}

TEST_F(LastStep, is_searched_for_only_where_it_is_asked_for) {
  watching_.set_success_last_step(false);
  add({0});
  const test::Appender rank(log(0));
  rank.write(line(100) + "[after training is done] datetime: 2024-03-01 11:00:03 \n");
  watch_->rank_ended(run_, RankNo(0), false);
  ASSERT_TRUE(ended(0));
  EXPECT_FALSE(ends_[0].success_seen);
  EXPECT_EQ(ends_[0].step, 100);
}

}  // namespace
}  // namespace muster::agent
