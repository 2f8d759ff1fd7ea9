// Whose report that a checkpoint is torn quarantines it, and what is found when the journal has
// lost its records; tests/scenarios/69 and 70 have the cases.
#include <gmock/gmock.h>

#include "controller/core/journal_end/lost_end.h"
#include "controller/core/recovery/checkpoints.h"
#include "tests/unit/controller_core/chain_world.h"

namespace muster::core {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// Attempt 1 ran on two nodes with two ranks each and wrote steps 100 and 200; attempt 2 was to
// resume from step 200.
struct Torn {
  Torn() {
    job.spec = SmallWorld::spec("train", 2, 2);
    for (const std::int64_t step : {100, 200})
      job.checkpoints.push_back({.attempt = AttemptNo(1), .step = step, .shards = 4});
    for (std::uint32_t number = 1; number <= 2; ++number) {
      AttemptRecord attempt;
      attempt.number = AttemptNo(number);
      if (number > 1) attempt.resume = ResumePoint{.attempt = AttemptNo(1), .step = 200};
      job.attempts.push_back(std::move(attempt));
    }
    for (AttemptRecord& attempt : job.attempts) place(attempt, {"n0", "n1"});
  }
  static void place(AttemptRecord& attempt, const std::vector<std::string>& nodes) {
    attempt.parts.clear();
    attempt.part_index.clear();
    for (const std::string& node : nodes) {
      NodePart part{.placed = {.node = NodeName(node),
                               .boot_id = BootId("b-" + node),
                               .instance = InstanceId("i-" + node)}};
      part.placed.first_rank = RankNo(static_cast<std::uint32_t>(2 * attempt.parts.size()));
      part.placed.rank_count = 2;
      attempt.part_index[part.placed.node] = attempt.parts.size();
      attempt.parts.push_back(std::move(part));
    }
  }
  void says(const std::string& node, std::vector<std::string> torn, std::uint32_t there = 4,
            const std::string& names = "all") {
    job.attempts[1].part(NodeName(node))->start_failed =
        NodeStartFailed{.node = NodeName(node),
                        .why = StartFailure::Checkpoint,
                        .torn = std::move(torn),
                        .there = there,
                        .needed = 4,
                        .names_sha256 = names};
  }
  [[nodiscard]] std::optional<TornCheckpoint> torn() const {
    return torn_checkpoint(job, job.attempts[1]);
  }
  [[nodiscard]] std::string seen() const { return torn() ? torn()->seen : ""; }

  JobRecord job;
};

TEST(TornCheckpoint, OnTheWordOfTheNodeThatWroteIt) {
  Torn ranks;
  ranks.says("n1", {"rank_1"});
  EXPECT_FALSE(ranks.torn()) << "rank 1 was n0's";
  ranks.says("n1", {"rank_1", "rank_2"});
  EXPECT_EQ(ranks.seen(), "node 'n1', which wrote it, has read it: rank_2 is short or damaged");
  EXPECT_EQ(ranks.torn()->older->step, 100);
  ranks.job.attempts[1].part(NodeName("n1"))->placed.instance = InstanceId("i-other");
  EXPECT_TRUE(ranks.torn()) << "on the same boot it is the same machine";
  ranks.job.attempts[1].part(NodeName("n1"))->placed.boot_id = BootId("b-other");
  EXPECT_FALSE(ranks.torn()) << "another machine of its name";

  Torn alone;
  Torn::place(alone.job.attempts[0], {"n1"});
  alone.says("n0", {"mp_rank_00"});
  EXPECT_FALSE(alone.torn());
  alone.says("n1", {"mp_rank_00"});
  EXPECT_EQ(alone.seen(), "node 'n1', which wrote it, has read it: mp_rank_00 is short or damaged");
}

TEST(TornCheckpoint, OrOfTwoNodesInWhateverAttempts) {
  Torn world;
  world.says("n0", {"mp_rank_00"});
  EXPECT_FALSE(world.torn());
  world.says("n1", {"mp_rank_01"});
  EXPECT_FALSE(world.torn()) << "each says it of another file";
  world.says("n1", {"mp_rank_00", "mp_rank_01"});
  EXPECT_EQ(world.seen(), "nodes 'n0' and 'n1' have read it: mp_rank_00 is short or damaged");
  AttemptRecord third = world.job.attempts[1];
  third.number = AttemptNo(3);
  world.says("n1", {});
  third.part(NodeName("n0"))->start_failed.reset();
  world.job.attempts.push_back(third);
  EXPECT_TRUE(torn_checkpoint(world.job, world.job.attempts[2]));
  world.job.attempts[2].resume->step = 100;
  EXPECT_FALSE(torn_checkpoint(world.job, world.job.attempts[2])) << "of another step";
}

TEST(TornCheckpoint, WhatIsNotThereIsGoneWhenAllWhoWroteItSeeTheSame) {
  Torn world;
  world.says("n0", {}, 3, "a");
  EXPECT_FALSE(world.torn()) << "n1 may have it";
  world.says("n1", {}, 3, "b");
  EXPECT_FALSE(world.torn()) << "each has a disk of its own";
  world.says("n1", {}, 3, "a");
  EXPECT_EQ(world.seen(),
            "nodes 'n0' and 'n1', which wrote it, have read it: it has 3 of its 4 shards");
  Torn moved;
  Torn::place(moved.job.attempts[0], {"n8", "n9"});
  moved.says("n0", {}, 3, "a");
  EXPECT_FALSE(moved.torn());
  moved.says("n1", {}, 3, "a");
  EXPECT_EQ(moved.seen(), "nodes 'n0' and 'n1' have read it: it has 3 of its 4 shards");
}

// One missing mount, or a disk that cannot be read, must not quarantine a checkpoint.
TEST(TornCheckpoint, NoOtherFailureIsAWord) {
  for (const StartFailure why : {StartFailure::Node, StartFailure::Disk, StartFailure::Launch}) {
    Torn world;
    for (const char* node : {"n0", "n1"}) {
      world.says(node, {"rank_0"});
      world.job.attempts[1].part(NodeName(node))->start_failed->why = why;
    }
    EXPECT_FALSE(world.torn());
  }
}

TEST(TornCheckpoint, WithoutAnOlderOneItIsNotQuarantined) {
  Torn world;
  world.says("n1", {"rank_2"});
  world.job.checkpoints[0].quarantined = true;
  ASSERT_TRUE(world.torn());
  EXPECT_FALSE(world.torn()->older);
  world.job.start = ResumePoint{.attempt = AttemptNo(7), .step = 50, .from_start = true};
  EXPECT_FALSE(world.torn()->older) << "weights begin at step 0";
  world.job.spec.mutable_start()->set_as(v1::START_AS_RESUME);
  EXPECT_EQ(world.torn()->older->step, 50);
  world.job.checkpoints[1].quarantined = true;
  EXPECT_FALSE(world.torn()) << "it is already";
}

// A job that begins with another job's checkpoint must not quarantine it.
TEST(TornCheckpoint, NotWhatStartNames) {
  Torn world;
  world.says("n0", {"rank_0"});
  world.says("n1", {"rank_0"});
  ASSERT_TRUE(world.torn());
  world.job.attempts[1].resume->from_start = true;
  EXPECT_FALSE(world.torn());
}

// --- in a job's history --------------------------------------------------------------------------

struct TornWorld : StagesWorld {
  TornWorld() { submit("j", spec("train", 1, 1)); }
  void fails(std::uint32_t attempt, const v1::CheckpointReading& reading) {
    v1::Fact what = fact("j", attempt);
    what.mutable_start_failed()->set_why(v1::START_FAILURE_CHECKPOINT);
    what.mutable_start_failed()->set_text("its checkpoint is torn");
    *what.mutable_start_failed()->mutable_checkpoint() = reading;
    report("n0", std::move(what));
    swept("j", attempt, "n0", v1::SWEPT_WHY_NEVER_STARTED);
  }
  static v1::CheckpointReading torn() {
    v1::CheckpointReading reading;
    reading.add_torn("a");
    reading.set_there(1);
    reading.set_needed(1);
    return reading;
  }
  // Attempt 1 has saved these steps and died.
  void saved(const std::vector<std::int64_t>& steps) {
    started("j", 1, "n0");
    for (const std::int64_t step : steps) checkpoint("j", 1, step);
    exited("j", 1, "n0", 0, -1, 9);
    swept("j", 1, "n0");
  }
};

// Five torn checkpoints in a row cost no attempt: there is a sixth one, and it is whole.
TEST(TornCheckpoints, AreQuarantinedOneAfterTheOtherWithoutACharge) {
  TornWorld world;
  world.saved({10, 20, 30, 40, 50, 60, 70});
  for (std::uint32_t attempt = 2; attempt <= 7; ++attempt) {
    ASSERT_EQ(world.job("j").current()->number.value, attempt) << "at once, in place";
    EXPECT_EQ(world.job("j").current()->resume->step, 90 - 10 * attempt);
    EXPECT_EQ(world.job("j").current()->resume->shards, 1U);
    world.fails(attempt, TornWorld::torn());
    EXPECT_FALSE(world.job("j").attempt(AttemptNo(attempt))->charged);
  }
  EXPECT_EQ(world.job("j").current()->resume->step, 10);
  EXPECT_EQ(world.job("j").attempts_without_progress, 0U);
  const Verdict verdict = *world.job("j").attempts[1].verdict;
  EXPECT_EQ(verdict.cls, FailureClass::Launch);
  EXPECT_TRUE(verdict.node.empty()) << "no node is blamed";
  EXPECT_EQ(verdict.reason,
            "the checkpoint of step 70 (attempt 1) is torn: node 'n0', which wrote it, has read "
            "it: a is short or damaged");
  EXPECT_EQ(world.replayed(), dump(world.ledger));
  world.fails(8, TornWorld::torn());
  EXPECT_EQ(world.job("j").phase, JobPhase::Failed) << "nothing is begun anew by itself";
  EXPECT_FALSE(world.job("j").checkpoints.front().quarantined);
  EXPECT_THAT(
      world.reason("j"),
      HasSubstr("no older whole one is there to go on from, and it is not begun anew by itself"));
}

TEST(TornCheckpoints, TheEventSaysBoth) {
  TornWorld world;
  world.saved({10, 20});
  world.fails(2, TornWorld::torn());
  std::string reason;
  for (const auto& [index, event] : world.journal)
    if (const auto* quarantined = std::get_if<CheckpointQuarantined>(&event.body))
      reason = quarantined->reason;
  EXPECT_EQ(reason,
            "node 'n0', which wrote it, has read it: a is short or damaged; the job goes on from "
            "step 10 of attempt 1");
}

// What a journal contains whose end was lost: attempt 1 and step 10 are there; attempts 2 and 3,
// and what they saved, are not.
struct LostWorld : TornWorld {
  LostWorld() {
    accept({.events = {ControllerStarted{.epoch = Epoch(1)}}});
    saved({10});
    started("j", 2, "n0");
    exited("j", 2, "n0", 0, -1, 9);
    accept({.events = {end_lost({}, {.rows = 5}, "id", /*ticks=*/0),
                       ControllerStarted{.epoch = Epoch(2)}}});
    EXPECT_EQ(job("j").attempts_lost, 5U);
    swept("j", 2, "n0");
    EXPECT_EQ(job("j").current()->number.value, 8U);
  }
  static v1::CheckpointReading found(
      const std::vector<std::pair<std::uint32_t, std::int64_t>>& steps) {
    v1::CheckpointReading reading;
    for (const auto& [attempt, step] : steps) {
      v1::FoundStep& one = *reading.add_found();
      one.set_attempt(attempt);
      one.set_step(step);
      one.set_path("/save/j");
      one.set_shards(1);
    }
    return reading;
  }
};

TEST(LostCheckpoints, AreScannedForBeforeTheNextAttemptAndFiledAsAnyOther) {
  LostWorld world;
  ASSERT_TRUE(scans_first(world.job("j"), *world.job("j").current()));
  EXPECT_FALSE(scans_first(world.job("j"), world.job("j").attempts[1]));
  world.fails(8, LostWorld::found({{4, 300}, {2, 200}, {1, 10}, {8, 900}, {0, 950}, {9, 960}}));
  EXPECT_EQ(world.job("j").checkpoints.size(), 3U)
      << "step 10 is known, and no attempt to come has written any";
  const AttemptRecord& next = *world.job("j").current();
  EXPECT_EQ(next.number.value, 9U);
  EXPECT_EQ(next.resume->step, 300);
  EXPECT_EQ(next.resume->attempt.value, 4U);
  EXPECT_FALSE(scans_first(world.job("j"), next)) << "once";
  EXPECT_FALSE(world.job("j").attempt(AttemptNo(8))->charged);
  EXPECT_EQ(world.replayed(), dump(world.ledger));
}

TEST(LostCheckpoints, AreScannedForUntilANodeHasScanned) {
  LostWorld world;
  v1::Fact what = world.fact("j", 8);
  what.mutable_start_failed()->set_why(v1::START_FAILURE_PORT);
  world.report("n0", std::move(what));
  world.swept("j", 8, "n0", v1::SWEPT_WHY_NEVER_STARTED);
  ASSERT_EQ(world.job("j").current()->number.value, 9U);
  EXPECT_TRUE(scans_first(world.job("j"), *world.job("j").current()));
  world.started("j", 9, "n0");
  world.exited("j", 9, "n0", 0, -1, 9);
  world.swept("j", 9, "n0");
  EXPECT_FALSE(scans_first(world.job("j"), *world.job("j").current()))
      << "attempt 9 has started: there was nothing newer";
}

TEST(LostCheckpoints, OfAnAttemptThatDoesNotScanNothingIsBelieved) {
  TornWorld world;
  world.saved({10});
  world.fails(2, LostWorld::found({{1, 300}}));
  EXPECT_EQ(world.job("j").checkpoints.size(), 1U);
}

}  // namespace
}  // namespace muster::core
