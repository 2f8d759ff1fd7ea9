#include "agent/watch/progress.h"

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
  for (std::int64_t step = 1; step <= 10; ++step) progress.step(2, {.step = step}, {}, static_cast<std::uint64_t>(step));
  EXPECT_EQ(reading(progress, 0).samples_size(), 10);
  EXPECT_EQ(reading(progress, 4).samples_size(), 6);
  EXPECT_EQ(reading(progress, 0).samples_size(), 6);
}

TEST(Progress, too_many_are_thinned_the_old_ones_first) {
  Progress progress;
  for (std::int64_t step = 1; step <= 5000; ++step) progress.step(2, {.step = step}, {}, static_cast<std::uint64_t>(step));
  const auto all = reading(progress, 0);
  ASSERT_LE(all.samples_size(), static_cast<int>(kSamplesMost));
  EXPECT_GE(all.samples_size(), 700);
  EXPECT_EQ(all.samples(all.samples_size() - 1).step(), 5000);
  EXPECT_EQ(all.samples(all.samples_size() - 2).step(), 4999);
  EXPECT_LT(all.samples(0).step(), 50);
}

}  // namespace
}  // namespace muster::agent
