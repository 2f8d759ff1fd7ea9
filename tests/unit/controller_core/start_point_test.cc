// A job's start point: known from its submission or from the end of a stage, second to every
// checkpoint of the job itself, and never counted as one of these.
#include "controller/core/chains/start_point.h"

#include <gmock/gmock.h>

#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/last_step.h"
#include "controller/core/recovery/verdict.h"
#include "tests/unit/controller_core/chain_world.h"

namespace muster::core {
namespace {

using testing::HasSubstr;

const std::vector<StageOf> kTwo = {{"j1", "pretrain"}, {"j2", "tune", {"j1"}}};

// A chain of two, the second of which starts from the first.
struct StartWorld : StagesWorld {
  explicit StartWorld(v1::StartAs as, std::optional<std::int64_t> step = std::nullopt) {
    std::vector<v1::JobSpec> all = specs("llama", kTwo);
    starts(all[1], "pretrain", as);
    if (step) all[1].mutable_start()->set_step(*step);
    const Decision taken = put(input(kTwo, all));
    EXPECT_FALSE(taken.refusal) << taken.refusal->message;
  }
  void pretrain(const std::vector<std::int64_t>& steps) {
    started("j1", 1, "n0");
    for (const std::int64_t step : steps) checkpoint("j1", 1, step);
    exited("j1", 1, "n0", 0, 0);
    swept("j1", 1, "n0");
    ASSERT_EQ(job("j1").phase, JobPhase::Succeeded);
  }
};

SmallWorld::Given from_elsewhere(v1::StartAs as, std::int64_t step) {
  SmallWorld::Given what{.spec = SmallWorld::spec("tune", 1, 1)};
  what.spec.mutable_start()->set_from("job:other");
  what.spec.mutable_start()->set_as(as);
  v1::StartPoint& point = *what.resolved.mutable_start()->mutable_point();
  point.set_attempt(2);
  point.set_step(step);
  point.set_path("/save/other/attempt-2/iter");
  return what;
}
// For a stage, the number of its shards is known.
ResumePoint start_at(std::uint32_t attempt, std::int64_t step, const std::string& path,
                     std::uint32_t shards = 1) {
  return {.attempt = AttemptNo(attempt),
          .step = step,
          .path = path,
          .from_start = true,
          .shards = shards};
}

TEST(StartPoint, TheEndOfAStageTellsIt) {
  for (const v1::StartAs as :
       {v1::START_AS_WEIGHTS, v1::START_AS_RESUME, v1::START_AS_RESUME_OR_SCRATCH}) {
    SCOPED_TRACE(as);
    StartWorld world(as);
    world.pretrain({100, 200});
    EXPECT_EQ(world.job("j2").start, start_at(1, 200, "/save/j1/attempt-1/iter_200"));
    ASSERT_EQ(world.job("j2").phase, JobPhase::Launching);
    EXPECT_EQ(world.job("j2").current()->resume, world.job("j2").start);
    EXPECT_EQ(world.replayed(), dump(world.ledger));
  }
}

TEST(StartPoint, OfTheStepThatIsAskedFor) {
  StartWorld world(v1::START_AS_RESUME, 100);
  world.pretrain({100, 200});
  EXPECT_EQ(world.job("j2").current()->resume, start_at(1, 100, "/save/j1/attempt-1/iter_100"));
  StartWorld missing(v1::START_AS_RESUME, 150);
  missing.pretrain({100, 200});
  EXPECT_EQ(missing.job("j2").phase, JobPhase::Cancelled);
  EXPECT_THAT(missing.reason("j2"),
              HasSubstr("has succeeded without a whole checkpoint of step 150; "));
  // A checkpoint that is named by its step is used, even if it was quarantined.
  StartWorld quarantined(v1::START_AS_RESUME, 200);
  quarantined.started("j1", 1, "n0");
  quarantined.checkpoint("j1", 1, 100);
  quarantined.checkpoint("j1", 1, 200);
  quarantined.accept({.events = {CheckpointQuarantined{
                          .job = JobId("j1"), .attempt = AttemptNo(1), .step = 200}}});
  quarantined.exited("j1", 1, "n0", 0, 0);
  quarantined.swept("j1", 1, "n0");
  EXPECT_EQ(quarantined.job("j2").start->step, 200);
}

TEST(StartPoint, WithoutACheckpointWhoAsksForOneEnds) {
  StartWorld resume(v1::START_AS_RESUME);
  v1::JobSpec behind = SmallWorld::spec("behind", 1, 1);
  behind.mutable_schedule()->add_after("j2");
  resume.submit("z", behind);
  resume.pretrain({});
  ASSERT_EQ(resume.job("j2").phase, JobPhase::Cancelled);
  EXPECT_EQ(resume.reason("j2"),
            "start.from: stage 'pretrain' of chain 'llama' (j1) has succeeded without a whole "
            "checkpoint; write start.as: resume-or-scratch to begin anew where "
            "there is none, or have that stage save one");
  EXPECT_TRUE(resume.job("j2").attempts.empty());
  EXPECT_EQ(resume.job("z").phase, JobPhase::Cancelled);
  EXPECT_THAT(resume.reason("z"),
              testing::StartsWith("stage 'tune' of chain 'llama' (j2), which it waited for, was "
                                  "cancelled: start.from: stage 'pretrain'"));
  EXPECT_TRUE(resume.ledger.indexes.dependents.empty());
  EXPECT_EQ(resume.replayed(), dump(resume.ledger));

  StartWorld weights(v1::START_AS_WEIGHTS);
  weights.pretrain({});
  ASSERT_EQ(weights.job("j2").phase, JobPhase::Cancelled);
  EXPECT_THAT(weights.reason("j2"),
              HasSubstr("name the directory that holds its weights (start.from: "
                        "stage:pretrain/DIR), or have that stage save one"));

  StartWorld scratch(v1::START_AS_RESUME_OR_SCRATCH);
  scratch.pretrain({});
  ASSERT_EQ(scratch.job("j2").phase, JobPhase::Launching);
  EXPECT_FALSE(scratch.job("j2").current()->resume);
}

// The journal's end is lost between the end of the stage and its effect; the stage may be archived
// by then.
TEST(StartPoint, WhatACutJournalLeavesOpenIsMadeUpFor) {
  for (const bool saved : {true, false}) {
    SCOPED_TRACE(saved);
    StartWorld world(v1::START_AS_RESUME);
    world.pretrain(saved ? std::vector<std::int64_t>{100} : std::vector<std::int64_t>{});
    std::size_t end = 0;
    while (!std::holds_alternative<JobEnded>(world.journal[end].second.body)) ++end;
    StagesWorld cut;
    cut.ledger = Ledger();
    cut.journal.assign(world.journal.begin(),
                       world.journal.begin() + static_cast<std::ptrdiff_t>(end + 1));
    for (const auto& [index, event] : cut.journal) apply(cut.ledger, index, event);
    ASSERT_FALSE(cut.ledger.indexes.unsettled.empty());
    cut.settle();
    EXPECT_EQ(cut.job("j2").phase, saved ? JobPhase::Launching : JobPhase::Cancelled);
    if (saved) {
      EXPECT_EQ(cut.job("j2").current()->resume, start_at(1, 100, "/save/j1/attempt-1/iter_100"));
    } else {
      EXPECT_EQ(cut.reason("j2"), world.reason("j2"));
    }
  }
  StartWorld world(v1::START_AS_RESUME);
  Ledger gone = world.ledger;  // only its tombstone is left
  apply(gone, JournalIndex(99),
        Event{.at = world.now.wall,
              .body = JobArchived{.job = JobId("j1"),
                                  .name = "llama.pretrain",
                                  .chain = JobId("j1"),
                                  .chain_name = "llama"}});
  const Decision settled = decide(gone, world.presence, ProposeSettle{.predecessor = JobId("j1")},
                                  world.now, world.limits);
  ASSERT_EQ(settled.events.size(), 1U);
  EXPECT_THAT(std::get<JobEnded>(settled.events[0]).verdict->reason,
              HasSubstr("start.from: stage 'pretrain' of chain 'llama' (j1) is archived, and its "
                        "checkpoints are not known here any more; "));
}

TEST(StartPoint, OfAStageThatIsDoneTheSubmissionTellsItOrIsRefused) {
  StagesWorld world;
  world.submit("a", SmallWorld::spec("llama.pretrain", 1, 1));
  world.started("a", 1, "n0");
  world.checkpoint("a", 1, 300);
  world.exited("a", 1, "n0", 0, 0);
  world.swept("a", 1, "n0");
  SmallWorld::Given tune{.spec = StagesWorld::specs("llama", {{"j2", "tune", {"a"}}})[0]};
  StagesWorld::starts(tune.spec, "pretrain", v1::START_AS_RESUME);
  tune.resolved = StagesWorld::resolved(tune.spec, {{"j2", "tune"}, {"a", "pretrain"}});
  ASSERT_FALSE(world.submit("j2", tune).refusal);
  EXPECT_EQ(world.job("j2").current()->resume, start_at(1, 300, "/save/a/attempt-1/iter_300"));

  tune.spec.mutable_start()->set_step(7);
  tune.spec.set_name("llama.again");
  tune.resolved.mutable_stage()->set_chain("j3");
  tune.spec.mutable_stage()->set_chain_name("other");
  const Decision refused = world.submit("j3", tune);
  ASSERT_TRUE(refused.refusal);
  EXPECT_EQ(refused.refusal->code, ErrorCode::Unsatisfiable);
  EXPECT_THAT(
      refused.refusal->message,
      HasSubstr("job 'llama.pretrain' (a) has succeeded without a whole checkpoint of step 7"));

  // What the submitting client has resolved is not checked again here.
  tune.resolved.mutable_start()->mutable_point()->set_step(7);
  EXPECT_FALSE(world.submit("j3", tune).refusal);
}

TEST(StartPoint, OneThatDoesNotWaitForItsStageIsNotTaken) {
  StagesWorld world;
  std::vector<v1::JobSpec> all = StagesWorld::specs("llama", kTwo);
  StagesWorld::starts(all[1], "pretrain", v1::START_AS_RESUME_OR_SCRATCH);
  all[1].clear_schedule();
  const Decision refused = world.put(StagesWorld::input(kTwo, all));
  ASSERT_TRUE(refused.refusal);
  EXPECT_THAT(
      refused.refusal->message,
      HasSubstr("start.from is 'stage:pretrain', and schedule.after does not name that stage"));
}

TEST(StartPoint, OneThatHasToGoOnIsNotTakenWithoutOne) {
  StagesWorld world;
  SmallWorld::Given what = from_elsewhere(v1::START_AS_RESUME, 100);
  what.resolved.mutable_start()->clear_point();
  const Decision refused = world.submit("j", what);
  ASSERT_TRUE(refused.refusal);
  EXPECT_EQ(refused.refusal->code, ErrorCode::Unsatisfiable);
  EXPECT_THAT(refused.refusal->message,
              HasSubstr("start.from: no whole checkpoint of 'job:other' is known, and start.as is "
                        "resume; write start.as: resume-or-scratch"));
  what.spec.mutable_start()->set_as(v1::START_AS_WEIGHTS);
  EXPECT_FALSE(world.submit("j", what).refusal);
}

TEST(StartPoint, EveryAttemptWithoutAnOwnCheckpointBeginsThere) {
  StagesWorld world;
  world.submit("j", from_elsewhere(v1::START_AS_RESUME, 1'000));
  const ResumePoint start = start_at(2, 1'000, "/save/other/attempt-2/iter", 0);
  EXPECT_EQ(world.job("j").current()->resume, start);
  world.breaks("j", 1, -1, 9);
  ASSERT_EQ(world.job("j").attempts.size(), 2U);
  EXPECT_EQ(world.job("j").current()->resume, start);
  // Attempt 2 of this job saves step 1000 as well: that is not the checkpoint with which it began,
  // and it takes precedence.
  world.started("j", 2, "n0");
  world.checkpoint("j", 2, 1'000);
  world.exited("j", 2, "n0", 0, -1, 9);
  world.swept("j", 2, "n0");
  const ResumePoint own{
      .attempt = AttemptNo(2), .step = 1'000, .path = "/save/j/attempt-2/iter_1000", .shards = 1};
  EXPECT_EQ(world.job("j").current()->resume, own);
  EXPECT_EQ(world.replayed(), dump(world.ledger));
}

TEST(StartPoint, AnOwnCheckpointWinsWhateverItsStep) {
  StagesWorld world;
  world.submit("j", from_elsewhere(v1::START_AS_WEIGHTS, 1'000));
  world.started("j", 1, "n0");
  world.checkpoint("j", 1, 10);
  world.exited("j", 1, "n0", 0, -1, 9);
  world.swept("j", 1, "n0");
  EXPECT_EQ(world.job("j").current()->resume->step, 10);
  EXPECT_FALSE(world.job("j").current()->resume->from_start);
}

TEST(StartPoint, OfAJobThatNeverGoesOnOnlyTheWeightsAreLeft) {
  SmallWorld::Given what = from_elsewhere(v1::START_AS_WEIGHTS, 1'000);
  what.spec.mutable_resume()->set_enabled(false);
  StagesWorld world;
  world.submit("j", what);
  EXPECT_TRUE(world.job("j").current()->resume);
  world.started("j", 1, "n0");
  world.checkpoint("j", 1, 10);
  world.exited("j", 1, "n0", 0, -1, 9);
  world.swept("j", 1, "n0");
  ASSERT_TRUE(world.job("j").current()->resume);
  EXPECT_TRUE(world.job("j").current()->resume->from_start);
  what.spec.mutable_start()->set_as(v1::START_AS_RESUME_OR_SCRATCH);
  what.spec.set_name("other");
  world.submit("k", what);
  EXPECT_FALSE(world.job("k").current()->resume);
}

// --- what counts against it ----------------------------------------------------------------------

TEST(StartPoint, IsNeverQuarantined) {
  StagesWorld world;
  world.submit("j", from_elsewhere(v1::START_AS_RESUME, 1'000));
  world.breaks("j", 1, -1, 11);
  world.breaks("j", 2, -1, 11);
  world.breaks("j", 3, -1, 11);
  for (const auto& [index, event] : world.journal)
    EXPECT_FALSE(std::holds_alternative<CheckpointQuarantined>(event.body));
  EXPECT_TRUE(world.job("j").current()->resume->from_start);
}

// The attempt that wrote the start point has the number and the step of a sound checkpoint of this
// job. It is not the checkpoint from which both attempts resumed.
TEST(StartPoint, IsNotTakenForAnOwnCheckpointOfTheSameNumberAndStep) {
  JobRecord job;
  job.spec = from_elsewhere(v1::START_AS_RESUME, 200).spec;
  job.start = start_at(1, 200, "/save/other", 0);
  job.checkpoints.push_back({.attempt = AttemptNo(1), .step = 100});
  job.checkpoints.push_back({.attempt = AttemptNo(1), .step = 200});
  Verdict verdict{.cls = FailureClass::UserError,
                  .node = NodeName("n0"),
                  .rank = RankNo(0),
                  .signature = "status:1|"};
  for (std::uint32_t number = 1; number <= 2; ++number) {
    AttemptRecord attempt;
    attempt.number = AttemptNo(number);
    attempt.resume = job.start;
    attempt.verdict = verdict;
    NodePart part{.placed = {.node = NodeName("n0"), .rank_count = 1}};
    part.exits[RankNo(0)] = {.node = NodeName("n0"), .rank = RankNo(0), .code = 1};
    attempt.part_index[NodeName("n0")] = 0;
    attempt.parts.push_back(std::move(part));
    job.attempts.push_back(std::move(attempt));
  }
  EXPECT_FALSE(suspect_checkpoint(job, job.attempts[1], verdict, 201, Limits{}));
  for (AttemptRecord& attempt : job.attempts) attempt.resume->from_start = false;
  EXPECT_TRUE(suspect_checkpoint(job, job.attempts[1], verdict, 201, Limits{}));
}

TEST(StartPoint, IsAnOlderOneToGoBackToWhereTheJobGoesOnFromIt) {
  for (const v1::StartAs as : {v1::START_AS_RESUME, v1::START_AS_WEIGHTS}) {
    SCOPED_TRACE(as);
    StagesWorld world;
    world.submit("j", from_elsewhere(as, 1'000));
    world.started("j", 1, "n0");
    world.checkpoint("j", 1, 1'100);
    world.exited("j", 1, "n0", 0, -1, 9);
    world.swept("j", 1, "n0");
    world.breaks("j", 2, -1, 11);
    world.breaks("j", 3, -1, 11);
    const bool back = as == v1::START_AS_RESUME;
    EXPECT_EQ(world.job("j").checkpoints[0].quarantined, back);
    EXPECT_EQ(world.job("j").current()->resume->from_start, back);
  }
}

// It begins at step 1000; the existence of this step is no progress.
TEST(StartPoint, ProgressIsWhatGoesBeyondIt) {
  StagesWorld world;
  world.submit("j", from_elsewhere(v1::START_AS_RESUME, 1'000));
  for (std::uint32_t attempt = 1; attempt <= 5; ++attempt) {
    ASSERT_EQ(world.job("j").attempts_without_progress, attempt - 1);
    world.started("j", attempt, "n0");
    v1::Fact step = world.fact("j", attempt);
    step.mutable_first_step()->set_step(1'000);
    world.report("n0", std::move(step));
    world.exited("j", attempt, "n0", 0, -1, 9);
    world.swept("j", attempt, "n0");
  }
  EXPECT_EQ(world.job("j").phase, JobPhase::Failed);
  EXPECT_THAT(world.reason("j"), HasSubstr("5 attempts in a row without a new best step"));
  // With only the weights it begins at step 0, and any step is progress.
  StagesWorld fresh;
  fresh.submit("j", from_elsewhere(v1::START_AS_WEIGHTS, 1'000));
  EXPECT_EQ(step_to_beat(fresh.job("j")), -1);
  fresh.started("j", 1, "n0");
  v1::Fact step = fresh.fact("j", 1);
  step.mutable_first_step()->set_step(5);
  fresh.report("n0", std::move(step));
  fresh.exited("j", 1, "n0", 0, -1, 9);
  fresh.swept("j", 1, "n0");
  EXPECT_EQ(fresh.job("j").attempts_without_progress, 0U);
}

TEST(StartPoint, CaughtUpIsNotBeforeTheStepThatItBeganAt) {
  StagesWorld world;
  world.submit("j", from_elsewhere(v1::START_AS_RESUME, 1'000));
  world.breaks("j", 1, -1, 9);
  world.started("j", 2, "n0");
  const auto reported = [&](std::int64_t step) {
    HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
    v1::AttemptReading& reading = *heard.heartbeat.add_readings();
    reading.set_job_id("j");
    reading.set_attempt(2);
    reading.add_ranks()->set_step(step);
    world.see(heard);
    return world.job("j").current()->caught_up_at.has_value();
  };
  EXPECT_FALSE(reported(3));
  EXPECT_TRUE(reported(1'001));
}

// Regression: "resumes from step 1000", and then "the incident is over", was shown for a program
// that does not read ${resume.dir} and had begun at step 0.
TEST(StartPoint, AFirstStepThatIsNotBehindTheOneHandedOverIsReported) {
  for (const auto& [as, step, reported] :
       {std::tuple(v1::START_AS_RESUME, 2, true), std::tuple(v1::START_AS_RESUME, 1'000, true),
        std::tuple(v1::START_AS_RESUME, 1'001, false),
        std::tuple(v1::START_AS_WEIGHTS, 2, false)}) {
    SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(as), step));
    StagesWorld world;
    world.submit("j", from_elsewhere(as, 1'000));
    world.started("j", 1, "n0");
    EXPECT_EQ(went_back_text(world.job("j"), *world.job("j").current()), "");
    v1::Fact fact = world.fact("j", 1);
    fact.mutable_first_step()->set_step(step);
    world.report("n0", std::move(fact));
    const std::string text = fmt::format(
        "attempt 1 did not go on from step 1000: began at {}; the program has to load what is in "
        "${{resume.dir}} (MUSTER_RESUME_DIR)",
        step);
    EXPECT_EQ(went_back_text(world.job("j"), *world.job("j").current()), reported ? text : "");
    const auto why = explain(world.ledger, world.presence, world.job("j"), world.now, world.limits);
    EXPECT_EQ(why.front(), reported ? text : "attempt 1 is running on every node");
  }
}

// success: last-step: the step of another training does not count for this one, unless this one
// resumes from there.
TEST(StartPoint, TheStepOfTheWeightsIsNotOneOfThisTraining) {
  for (const v1::StartAs as : {v1::START_AS_RESUME, v1::START_AS_WEIGHTS}) {
    SCOPED_TRACE(as);
    StagesWorld world;
    SmallWorld::Given what = from_elsewhere(as, 1'000);
    what.spec.mutable_success()->set_last_step(true);
    world.submit("j", what);
    AttemptRecord attempt = *world.job("j").current();
    RankExited exit{
        .job = JobId("j"), .attempt = AttemptNo(1), .node = NodeName("n0"), .rank = RankNo(0)};
    exit.step = 3;
    exit.total = 1'000;
    attempt.parts[0].exits[RankNo(0)] = exit;
    EXPECT_EQ(last_step_missing(world.job("j"), attempt).empty(), as == v1::START_AS_RESUME);
  }
}

}  // namespace
}  // namespace muster::core
