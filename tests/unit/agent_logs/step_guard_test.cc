// Regression: a program printed "step 999999999999 loss 1" once, among steps that increased
// normally. From then on, this was the best step. Five attempts, each of which got further than the
// one before, counted as "5 attempts in a row without a new best step", and the job failed.
#include "agent/logs/step_guard.h"

#include <gtest/gtest.h>

#include <vector>

#include "agent/logs/progress.h"

namespace muster::agent {
namespace {

// As RankReader does it; lines are {step, total}.
std::vector<std::int64_t> counted(const std::vector<std::pair<std::int64_t, std::int64_t>>& lines,
                                  std::int64_t begin = 0, bool total_given = false) {
  StepGuard guard(begin, total_given);
  engine::StepLine latest;
  std::vector<std::int64_t> steps;
  const auto count = [&](const engine::StepLine& line) {
    steps.push_back(line.step);
    merge(latest, line);
  };
  for (const auto& [step, total] : lines) {
    const engine::StepLine line{.step = step, .total = total};
    const StepGuard::Verdict verdict = guard.judge(line, latest);
    if (verdict == StepGuard::Verdict::Both) count(guard.take_pending());
    if (verdict != StepGuard::Verdict::Not) count(line);
  }
  return steps;
}
using Steps = std::vector<std::int64_t>;

constexpr std::int64_t kHuge = 999'999'999'999;

TEST(StepGuard, OneThatIsFarAwayAndAloneIsNoStep) {
  EXPECT_EQ(counted({{20, 0}, {kHuge, 0}, {21, 0}, {22, 0}}), (Steps{20, 21, 22}));
  EXPECT_EQ(counted({{kHuge, 0}, {1, 0}, {2, 0}}), (Steps{1, 2})) << "the first line as well";
  EXPECT_EQ(counted({{1, 0}, {kHuge, 0}, {2, 0}, {kHuge + 5, 0}, {3, 0}}), (Steps{1, 2, 3}))
      << "and each time anew";
  EXPECT_EQ(counted({{20, 40}, {kHuge, 0}, {21, 40}}), (Steps{20, 21}));
  EXPECT_EQ(counted({{20, 40}, {kHuge, 0}}), (Steps{20})) << "what nothing follows does not count";
}

TEST(StepGuard, BeyondTheTotalOfItsOwnLineIsNoStep) {
  EXPECT_EQ(counted({{20, 40}, {kHuge, 40}, {kHuge + 1, 40}, {21, 40}}), (Steps{20, 21}))
      << "twice in a row, too";
  EXPECT_EQ(counted({{kHuge, kHuge}, {1, 40}}), (Steps{1}));
}

// Regression: two lines that rise ("step 999999999990", then "step 999999999999") confirmed each
// other, and the job failed as above.
TEST(StepGuard, TwoThatNoTrainingReachesDoNotConfirmEachOther) {
  EXPECT_EQ(counted({{kHuge - 9, 0}, {kHuge, 0}, {1, 0}, {2, 0}}), (Steps{1, 2}));
  EXPECT_EQ(counted({{20, 0}, {kHuge - 9, 0}, {kHuge, 0}, {21, 0}}), (Steps{20, 21}));
  EXPECT_EQ(counted({{kHuge, 0}, {kHuge + 1, 0}}, kHuge - 1), (Steps{kHuge, kHuge + 1}))
      << "a checkpoint of such a step is another matter";
}

TEST(StepGuard, StepsThatGoOnCount) {
  EXPECT_EQ(counted({{1, 0}, {500, 0}, {1500, 0}}), (Steps{1, 500, 1500}))
      << "a line each few hundred steps";
  EXPECT_EQ(counted({{50'000, 100'000}, {50'100, 100'000}}), (Steps{50'000, 50'100}))
      << "a resumed training that names its total";
  EXPECT_EQ(counted({{50'001, 0}, {50'002, 0}}, 50'000), (Steps{50'001, 50'002}))
      << "or was handed a checkpoint";
  EXPECT_EQ(counted({{70'000, 0}, {70'001, 0}, {70'002, 0}}), (Steps{70'000, 70'001, 70'002}))
      << "or goes on from one that nobody knows of: a line later";
  EXPECT_EQ(counted({{50'000, 0}, {60'000, 0}, {70'000, 0}}, 40'000),
            (Steps{50'000, 60'000, 70'000}));
  EXPECT_EQ(counted({{30, 0}, {10, 0}, {11, 0}}), (Steps{30, 10, 11})) << "it went back";
  EXPECT_EQ(counted({{3, 10}, {4, 10}, {21, 0}, {22, 0}}), (Steps{3, 4, 21, 22}))
      << "the total was of another loop";
}

// A number in observe.progress.total is the user's estimate; the program may know better.
TEST(StepGuard, ATotalThatTheSpecGivesDoesNotEndTheTraining) {
  EXPECT_EQ(counted({{99, 100}, {100, 100}, {101, 100}, {102, 100}, {103, 100}}, 0, true),
            (Steps{99, 100, 101, 102, 103}));
  EXPECT_EQ(counted({{99, 100}, {kHuge, 100}, {100, 100}}, 0, true), (Steps{99, 100}));
}

TEST(StepGuard, AnyNumbersAreCompared) {
  constexpr std::int64_t kMost = INT64_MAX;
  EXPECT_EQ(counted({{1, 0}, {kMost - 1, 0}, {kMost, 0}, {2, 0}}).back(), 2);
  EXPECT_EQ(counted({{0, 0}, {kMost, 0}, {kMost, 0}, {1, 0}}), (Steps{0, 1}));
}

}  // namespace
}  // namespace muster::agent
