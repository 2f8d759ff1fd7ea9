#include "agent/logs/progress.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

v1::AttemptReading reading(Progress& progress, std::uint64_t since) {
  v1::AttemptReading all;
  all.add_ranks()->set_rank(2);
  all.add_ranks()->set_rank(5);
  progress.fill(all, since);
  return all;
}

TEST(Progress, the_lowest_rank_that_prints_speaks) {
  Progress progress;
  progress.step(5, {.step = 1}, {}, 1);
  progress.step(2, {.step = 1, .total = 10, .loss = 2.5, .has_loss = true}, {}, 2);
  progress.step(5, {.step = 2}, {}, 3);
  progress.step(2, {.step = 2}, {}, 4);
  const auto all = reading(progress, 1);
  ASSERT_EQ(all.samples_size(), 2);
  EXPECT_EQ(all.samples(0).rank(), 2u);
  EXPECT_EQ(all.samples(1).step(), 2);
  EXPECT_EQ(all.ranks(0).total(), 10) << "a line without the total does not forget it";
  EXPECT_TRUE(all.ranks(0).has_loss());
  EXPECT_EQ(all.ranks(1).step(), 2);
}

TEST(Progress, samples_come_again_until_their_mark_is_given) {
  Progress progress;
  for (std::int64_t step = 1; step <= 10; ++step)
    progress.step(2, {.step = step}, {}, static_cast<std::uint64_t>(step));
  EXPECT_EQ(reading(progress, 0).samples_size(), 10);
  EXPECT_EQ(reading(progress, 4).samples_size(), 6);
  EXPECT_EQ(reading(progress, 0).samples_size(), 6);
}

TEST(Progress, too_many_are_thinned_the_old_ones_first) {
  Progress progress;
  for (std::int64_t step = 1; step <= 5000; ++step)
    progress.step(2, {.step = step}, {}, static_cast<std::uint64_t>(step));
  const auto all = reading(progress, 0);
  ASSERT_LE(all.samples_size(), static_cast<int>(kSamplesMost));
  EXPECT_GE(all.samples_size(), 700);
  EXPECT_EQ(all.samples(all.samples_size() - 1).step(), 5000);
  EXPECT_EQ(all.samples(all.samples_size() - 2).step(), 4999);
  EXPECT_LT(all.samples(0).step(), 50);
}

TEST(Progress, a_sample_has_what_its_line_says_and_no_more) {
  Progress progress;
  engine::StepLine line{.step = 20, .total = 100, .loss = 2.5, .has_loss = true, .seconds = 0.5};
  line.covers = 10;
  line.epoch = 2;
  line.learning_rate = 0;
  line.has_learning_rate = true;
  line.samples_per_second = 64;
  line.tokens_per_second = 4096;
  line.loss_scale = 65536;
  progress.step(2, line, WallTime(std::chrono::milliseconds(1500)), 1);
  progress.step(2, {.step = 21}, {}, 2);
  const auto all = reading(progress, 0);
  ASSERT_EQ(all.samples_size(), 2);
  EXPECT_EQ(all.samples(0).ShortDebugString(),
            "rank: 2 step: 20 loss: 2.5 at { seconds: 1 nanos: 500000000 } seconds: "
            "0.5 covers: 10 epoch: 2 learning_rate: 0 samples_per_second: 64 tokens_per_second: "
            "4096 scale: 65536");
  EXPECT_EQ(all.samples(1).ShortDebugString(), "rank: 2 step: 21 at { }");
}

TEST(Progress, a_loss_that_is_no_number_is_none_and_hides_the_one_before) {
  Progress progress;
  progress.step(2, {.step = 1, .loss = 2.5, .has_loss = true}, {}, 1);
  progress.step(2, {.step = 2}, {}, 2);
  EXPECT_TRUE(reading(progress, 0).ranks(0).has_loss())
      << "a line without the loss does not forget it";
  engine::StepLine gone{.step = 3};
  gone.not_finite = 1;  // Megatron's mark
  progress.step(2, gone, {}, 3);
  EXPECT_FALSE(reading(progress, 0).ranks(0).has_loss());
  EXPECT_EQ(reading(progress, 0).ranks(0).loss(), 0);
  EXPECT_TRUE(reading(progress, 0).ranks(0).loss_not_finite());
  EXPECT_FALSE(reading(progress, 0).samples(2).has_loss());
  EXPECT_TRUE(reading(progress, 0).samples(2).loss_not_finite());
  progress.step(2, {.step = 4, .loss = 2.25, .has_loss = true}, {}, 4);
  EXPECT_EQ(reading(progress, 0).ranks(0).loss(), 2.25);
  EXPECT_FALSE(reading(progress, 0).ranks(0).loss_not_finite());
  progress.loss_vanished(2);
  EXPECT_FALSE(reading(progress, 0).ranks(0).has_loss());
  EXPECT_TRUE(reading(progress, 0).ranks(0).loss_not_finite());
}

// The rate of a step, or the end of its sink, is on a line of its own.
TEST(Progress, lines_of_one_step_make_one_sample) {
  Progress progress;
  engine::StepLine line{.step = 20, .loss = 2.5, .has_loss = true};
  progress.step(2, line, {}, 1);
  line.seconds = 0.5;
  line.samples_per_second = 64;
  progress.step(2, line, {}, 2);
  auto all = reading(progress, 0);
  ASSERT_EQ(all.samples_size(), 1);
  EXPECT_EQ(all.samples(0).samples_per_second(), 64);
  EXPECT_EQ(reading(progress, 1).samples_size(), 1) << "it goes again, fuller";
  EXPECT_EQ(reading(progress, 2).samples_size(), 0);
}

}  // namespace
}  // namespace muster::agent
