// When a checkpoint is quarantined; tests/scenarios/27 has the cases.
#include "controller/core/recovery/checkpoints.h"

#include <gtest/gtest.h>

#include "controller/core/model/text.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

// A job whose attempts 2 and 3 resumed from step 200 of attempt 1; attempt 3 is about to end. It
// has two nodes with one rank each.
struct Pair {
  Pair() {
    job.spec = SmallWorld::spec("train", 2, 1);
    for (const std::int64_t step : {100, 200})
      job.checkpoints.push_back({.attempt = AttemptNo(1), .step = step});
    for (std::uint32_t number = 1; number <= 3; ++number) {
      AttemptRecord attempt;
      attempt.number = AttemptNo(number);
      if (number > 1) attempt.resume = ResumePoint{.attempt = AttemptNo(1), .step = 200};
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const NodeName node(fmt::format("n{}", rank));
        NodePart part{.placed = {.node = node, .first_rank = RankNo(rank), .rank_count = 1}};
        part.exits[RankNo(rank)] = {.node = node, .rank = RankNo(rank), .code = -1, .signal = 11};
        attempt.part_index[node] = attempt.parts.size();
        attempt.parts.push_back(std::move(part));
      }
      attempt.verdict = verdict;
      attempt.best_step = -1;
      job.attempts.push_back(std::move(attempt));
    }
    job.attempts.back().verdict.reset();
  }
  [[nodiscard]] AttemptRecord& before() { return job.attempts[1]; }
  [[nodiscard]] AttemptRecord& last() { return job.attempts[2]; }
  [[nodiscard]] std::optional<ResumePoint> suspect(std::int64_t best_step = -1) {
    return suspect_checkpoint(job, last(), verdict, best_step, Limits{});
  }

  JobRecord job;
  Verdict verdict{.cls = FailureClass::Signal,
                  .node = NodeName("n1"),
                  .rank = RankNo(1),
                  .reason = "rank 1 was killed",
                  .signature = "signal:11|"};
};

TEST(SuspectCheckpoint, IsTheOneThatBothWentOnFrom) {
  Pair pair;
  const auto suspect = pair.suspect();
  ASSERT_TRUE(suspect);
  EXPECT_EQ(suspect->attempt, AttemptNo(1));
  EXPECT_EQ(suspect->step, 200);
}

TEST(SuspectCheckpoint, FiveStepsFurtherIsTheLimitForBoth) {
  Pair pair;
  EXPECT_TRUE(pair.suspect(205));
  EXPECT_FALSE(pair.suspect(206));
  pair.before().best_step = 205;
  EXPECT_TRUE(pair.suspect());
  pair.before().best_step = 206;
  EXPECT_FALSE(pair.suspect());
}

TEST(SuspectCheckpoint, TwoDifferentFailuresAreNone) {
  Pair pair;
  pair.before().verdict->signature = "signal:7|";
  EXPECT_FALSE(pair.suspect());
}

TEST(SuspectCheckpoint, FromDifferentCheckpointsIsNone) {
  Pair pair;
  pair.before().resume->step = 100;
  EXPECT_FALSE(pair.suspect());
  pair.before().resume = ResumePoint{.attempt = AttemptNo(2), .step = 200};
  EXPECT_FALSE(pair.suspect());
  pair.before().resume.reset();
  EXPECT_FALSE(pair.suspect());
}

TEST(SuspectCheckpoint, NeedsAnOlderOneThatCounts) {
  Pair pair;
  pair.job.checkpoints[0].quarantined = true;
  EXPECT_FALSE(pair.suspect());
  pair.job.checkpoints.erase(pair.job.checkpoints.begin());
  EXPECT_FALSE(pair.suspect());
}

TEST(SuspectCheckpoint, NotWhereANewerOneIsThere) {
  Pair pair;
  pair.job.checkpoints.push_back({.attempt = AttemptNo(3), .step = 203});
  EXPECT_FALSE(pair.suspect(203)) << "the next attempt tries the newer one";
}

TEST(SuspectCheckpoint, OnlyOfWhatACheckpointCanCause) {
  for (const FailureClass cls : {FailureClass::Oom, FailureClass::Node, FailureClass::Launch,
                                 FailureClass::Worker, FailureClass::Operator}) {
    Pair pair;
    pair.verdict.cls = pair.before().verdict->cls = cls;
    EXPECT_FALSE(pair.suspect()) << to_string(cls);
  }
  for (const auto& [signal, own] : {std::pair{9, false},
                                    {15, false},
                                    {2, false},
                                    {6, true},
                                    {7, true},
                                    {8, true},
                                    {11, true}}) {
    Pair pair;
    pair.last().part(NodeName("n1"))->exits.at(RankNo(1)).signal = signal;
    EXPECT_EQ(pair.suspect().has_value(), own) << signal;
  }
  // Every rank ended with status 0, and success.regex did not match: no rank failed.
  Pair ended_well;
  ended_well.verdict.cls = ended_well.before().verdict->cls = FailureClass::UserError;
  EXPECT_TRUE(ended_well.suspect());
  ended_well.verdict.rank = ended_well.before().verdict->rank = std::nullopt;
  EXPECT_FALSE(ended_well.suspect());
}

TEST(SuspectCheckpoint, NotOfAJobThatNeverGoesOn) {
  Pair pair;
  pair.job.spec.mutable_resume()->set_enabled(false);
  EXPECT_FALSE(pair.suspect());
}

TEST(NewestCheckpoint, IsNotOneThatIsQuarantined) {
  Pair pair;
  EXPECT_EQ(newest_checkpoint(pair.job)->step, 200);
  pair.job.checkpoints[1].quarantined = true;
  EXPECT_EQ(newest_checkpoint(pair.job)->step, 100);
}

// Regression: a job that saved every minute for a year had half a million checkpoints in memory,
// and each proposal checked all of them.
TEST(Checkpoints, TheLatestOfAJobAreKeptAndTheOneToGoOnFrom) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j", SmallWorld::spec("train", 1, 1));
  const auto saved = [&](std::int64_t step) {
    world.accept({.events = {CheckpointCompleted{
                      .job = JobId("j"), .attempt = AttemptNo(1), .step = step}}});
  };
  saved(1'000'000);  // the first, and far ahead of the others
  for (std::size_t i = 1; i <= kCheckpointsMax + 10; ++i) saved(static_cast<std::int64_t>(i));
  const JobRecord& job = world.job("j");
  ASSERT_EQ(job.checkpoints.size(), kCheckpointsMax);
  EXPECT_EQ(job.checkpoints[0].step, 1'000'000);
  EXPECT_EQ(job.checkpoints[1].step, 12) << "steps 1 to 11 are dropped";
  EXPECT_EQ(job.checkpoints.back().step, static_cast<std::int64_t>(kCheckpointsMax + 10));
  EXPECT_EQ(newest_checkpoint(job)->step, 1'000'000);
  EXPECT_EQ(best_step_of(world.presence, job, *job.current()), 1'000'000);

  world.accept({.events = {CheckpointQuarantined{
                    .job = JobId("j"), .attempt = AttemptNo(1), .step = 1'000'000}}});
  saved(2'000);
  EXPECT_EQ(job.checkpoints[0].step, 12) << "one that counts no more is as any other";
  EXPECT_EQ(newest_checkpoint(job)->step, 2'000);
  Ledger again;
  for (const auto& [index, event] : world.journal) apply(again, index, event);
  EXPECT_EQ(dump(again), dump(world.ledger));
}

// Regression: the end of each rank's log checked all nodes of the attempt: ranks times nodes.
TEST(Attempt, KnowsWhichPartRunsARank) {
  AttemptRecord attempt;
  const auto add = [&](std::uint32_t first, std::uint32_t count) {
    attempt.parts.push_back({.placed = {.node = NodeName(fmt::format("n{}", attempt.parts.size())),
                                        .first_rank = RankNo(first),
                                        .rank_count = count}});
  };
  EXPECT_EQ(attempt.part_of(RankNo(0)), nullptr);
  add(0, 8);
  add(8, 4);
  add(12, 0);  // idle
  add(12, 0);
  add(12, 2);
  for (const auto& [rank, part] :
       {std::pair{0U, 0U}, {7U, 0U}, {8U, 1U}, {11U, 1U}, {12U, 4U}, {13U, 4U}})
    EXPECT_EQ(attempt.part_of(RankNo(rank)), &attempt.parts[part]) << rank;
  EXPECT_EQ(attempt.part_of(RankNo(14)), nullptr);
  AttemptRecord once;  // one process, and nodes that only contribute their devices
  once.parts.push_back({.placed = {.first_rank = RankNo(0), .rank_count = 1}});
  once.parts.push_back({.placed = {.first_rank = RankNo(1)}});
  EXPECT_EQ(once.part_of(RankNo(0)), &once.parts[0]);
  EXPECT_EQ(once.part_of(RankNo(1)), nullptr);
}

}  // namespace
}  // namespace muster::core
