// Chains: accepted all or none, named, cancelled as one, and remembered as long as any of their
// jobs is.
#include "controller/core/chains/chains.h"

#include <gmock/gmock.h>

#include "tests/unit/controller_core/chain_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<StageOf> kThree = {
    {"j1", "prepare"}, {"j2", "train", {"j1"}}, {"j3", "eval", {"j2"}}};

TEST(Chains, AllAreTakenInOneDecision) {
  StagesWorld world;
  const Decision taken = world.chain("llama", kThree, "r1");
  ASSERT_FALSE(taken.refusal) << taken.refusal->message;
  EXPECT_EQ(taken.job, JobId("j1"));
  ASSERT_EQ(taken.events.size(), 3U);
  EXPECT_EQ(std::get<JobSubmitted>(taken.events[0]).request_id, RequestId("r1"));
  EXPECT_EQ(std::get<JobSubmitted>(taken.events[1]).request_id, RequestId());
  EXPECT_THAT(world.ledger.indexes.chains.at(JobId("j1")),
              ElementsAre(JobId("j1"), JobId("j2"), JobId("j3")));
  EXPECT_EQ(world.ledger.indexes.chain_names.at("llama"), JobId("j1"));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("j2").waits_for, std::set{JobId("j1")});
  const Decision again = world.chain("llama", {{"k1", "prepare"}, {"k2", "train", {"k1"}}}, "r1");
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.job, JobId("j1"));
  world.succeed("j1");
  world.succeed("j2");
  world.succeed("j3");
  EXPECT_EQ(world.job("j3").phase, JobPhase::Succeeded);
  EXPECT_EQ(world.replayed(), dump(world.ledger));
}

TEST(Chains, NoneIsTakenWhereOneCannotBe) {
  StagesWorld world;
  const auto refused = [&](std::vector<v1::JobSpec> specs,
                           const std::vector<StageOf>& stages = kThree) {
    const Decision decision = world.put(StagesWorld::input(stages, specs, "r"));
    EXPECT_TRUE(decision.events.empty());
    EXPECT_TRUE(world.ledger.indexes.chains.empty());
    return decision.refusal.value_or(Error{ErrorCode::Internal, "it was taken"});
  };
  std::vector<v1::JobSpec> specs = StagesWorld::specs("llama", kThree);
  specs[2].mutable_resources()->set_devices(99);
  EXPECT_EQ(refused(specs).code, ErrorCode::Unsatisfiable);
  EXPECT_THAT(refused(specs).message,
              HasSubstr("submitting stage 'eval' of chain 'llama': need 1 node with 99 devices"));

  specs = StagesWorld::specs("llama", kThree);
  specs[1].mutable_schedule()->add_after("nobody");
  EXPECT_EQ(refused(specs).code, ErrorCode::NotFound);
  EXPECT_THAT(
      refused(specs).message,
      HasSubstr("submitting stage 'train' of chain 'llama': schedule.after names job 'nobody'"));

  // A later stage of the chain cannot be a predecessor.
  specs = StagesWorld::specs("llama", kThree);
  specs[1].mutable_schedule()->set_after(0, "j3");
  EXPECT_EQ(refused(specs).code, ErrorCode::NotFound);

  world.limits.queued_jobs_max = 2;
  EXPECT_EQ(refused(StagesWorld::specs("llama", kThree)).code, ErrorCode::ResourceExhausted);
  EXPECT_THAT(
      refused(StagesWorld::specs("llama", kThree)).message,
      HasSubstr("submitting chain 'llama' of 3 jobs: 0 are queued already, and the limit is 2"));
  world.limits.queued_jobs_max = 3;
  EXPECT_FALSE(world.chain("llama", kThree).refusal);
}

TEST(Chains, IdsRiseAlongOne) {
  StagesWorld world;
  const Decision decision = world.chain("llama", {{"j2", "prepare"}, {"j1", "train", {"j2"}}});
  ASSERT_TRUE(decision.refusal);
  EXPECT_EQ(decision.refusal->code, ErrorCode::Conflict);
  world.chain("llama", kThree);
  const Decision used = world.chain("other", {{"j0", "prepare"}, {"j2", "train", {"j0"}}});
  ASSERT_TRUE(used.refusal);
  EXPECT_THAT(used.refusal->message,
              HasSubstr("submitting stage 'train' of chain 'other': the id 'j2' was used before"));
}

TEST(Chains, LiveJobsAndLiveChainsShareTheirNames) {
  StagesWorld world;
  world.submit("a", SmallWorld::spec("taken", 1, 1));
  const Decision as_job = world.chain("taken", {{"b1", "x"}, {"b2", "y", {"b1"}}});
  ASSERT_TRUE(as_job.refusal);
  EXPECT_EQ(as_job.refusal->code, ErrorCode::Conflict);
  EXPECT_EQ(as_job.refusal->message,
            "submitting chain 'taken': the name 'taken' is taken by job 'taken' (a), which is "
            "launching; choose another name, or `muster cancel a` first");

  world.chain("llama", {{"c1", "x"}, {"c2", "y", {"c1"}}});
  const Decision as_chain = world.chain("llama", {{"d1", "v"}, {"d2", "w", {"d1"}}});
  ASSERT_TRUE(as_chain.refusal);
  EXPECT_EQ(as_chain.refusal->message,
            "submitting chain 'llama': the name 'llama' is taken by chain 'llama', whose stage 'x' "
            "(c1) is launching; choose another name, or `muster cancel llama` first");
  const Decision job_as_chain = world.submit("e", SmallWorld::spec("llama", 1, 1));
  ASSERT_TRUE(job_as_chain.refusal);
  EXPECT_EQ(job_as_chain.refusal->code, ErrorCode::Conflict);
  EXPECT_THAT(job_as_chain.refusal->message,
              HasSubstr("submitting job 'llama': the name 'llama' is taken by chain 'llama', whose "
                        "stage 'x' (c1) is launching; "));
  const Decision stage_name = world.submit("e", SmallWorld::spec("llama.y", 1, 1));
  ASSERT_TRUE(stage_name.refusal);
  EXPECT_EQ(stage_name.refusal->code, ErrorCode::Conflict);
  const Decision twice = world.chain("fresh", {{"f1", "x"}, {"f2", "x", {"f1"}}});
  ASSERT_TRUE(twice.refusal);
  EXPECT_THAT(twice.refusal->message, HasSubstr("the name 'fresh.x' is given twice"));

  // The name is in use as long as one job of the chain lives. Then it is free, and refers to the
  // newest chain with that name.
  world.succeed("c1");
  EXPECT_TRUE(world.chain("llama", {{"d1", "v"}, {"d2", "w", {"d1"}}}).refusal);
  world.succeed("c2");
  EXPECT_FALSE(world.chain("llama", {{"d1", "v"}, {"d2", "w", {"d1"}}}).refusal);
  EXPECT_EQ(world.ledger.indexes.chain_names.at("llama"), JobId("d1"));
  EXPECT_EQ(world.replayed(), dump(world.ledger));
}

TEST(Chains, ACancelOfOneEndsEachOfItsJobsOnce) {
  StagesWorld world;
  world.chain("llama", {{"j1", "prepare"},
                        {"j2", "train", {"j1"}},
                        {"j3", "eval", {"j2"}},
                        {"j4", "report", {"j1", "j3"}}});
  v1::JobSpec outside = SmallWorld::spec("outside", 1, 1);
  outside.mutable_schedule()->add_after("j3");
  world.submit("z", outside);
  world.succeed("j1");
  world.started("j2", 1, "n0");
  const Decision cancel =
      world.put(CancelJob{.job = JobId("j3"), .reason = "wrong data", .whole_chain = true});
  ASSERT_FALSE(cancel.refusal);
  std::map<JobId, int> ends;
  for (const EventBody& body : cancel.events) {
    if (const auto* ended = std::get_if<JobEnded>(&body)) ++ends[ended->job];
  }
  EXPECT_EQ(ends, (std::map<JobId, int>{{JobId("j3"), 1}, {JobId("j4"), 1}, {JobId("z"), 1}}));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Succeeded);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Draining);
  EXPECT_EQ(world.reason("j4"), "cancelled: wrong data");
  EXPECT_EQ(world.reason("z"),
            "stage 'eval' of chain 'llama' (j3), which it waited for, was cancelled: wrong data");
  world.swept("j2", 1, "n0");
  EXPECT_EQ(world.job("j2").phase, JobPhase::Cancelled);
  EXPECT_EQ(world.replayed(), dump(world.ledger));

  const Decision late = world.put(CancelJob{.job = JobId("j1"), .whole_chain = true});
  ASSERT_TRUE(late.refusal);
  EXPECT_EQ(late.refusal->code, ErrorCode::Conflict);
  EXPECT_EQ(late.refusal->message, "cancelling chain 'llama': every stage of it has ended already");
}

TEST(Chains, ACancelOfOneStageIsOfThatAndWhatIsBehindIt) {
  StagesWorld world;
  world.chain("llama", kThree);
  world.put(CancelJob{.job = JobId("j2"), .reason = "not needed"});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Cancelled);
  EXPECT_EQ(world.reason("j3"),
            "stage 'train' of chain 'llama' (j2), which it waited for, was cancelled: not needed");
  // For a job outside of a chain, whole_chain means that job.
  world.submit("a", SmallWorld::spec("alone", 1, 1));
  EXPECT_FALSE(world.put(CancelJob{.job = JobId("a"), .whole_chain = true}).refusal);
  EXPECT_TRUE(world.job("a").cancel_requested);
}

TEST(Chains, AFailureNamesTheStage) {
  StagesWorld world;
  world.chain("llama", kThree);
  EXPECT_THAT(explain(world.ledger, world.presence, world.job("j2"), world.now, world.limits),
              ElementsAre("waits for stage 'prepare' of chain 'llama' (j1), which is launching"));
  EXPECT_THAT(
      explain(world.ledger, world.presence, world.job("j3"), world.now, world.limits),
      ElementsAre("waits for stage 'train' of chain 'llama' (j2), which is queued behind others"));
  world.breaks("j1", 1, 1);
  world.breaks("j1", 2, 1);
  ASSERT_EQ(world.job("j1").phase, JobPhase::Failed);
  EXPECT_THAT(
      world.reason("j2"),
      testing::StartsWith("stage 'prepare' of chain 'llama' (j1), which it waited for, failed: "));
  EXPECT_THAT(world.reason("j3"),
              testing::StartsWith("stage 'train' of chain 'llama' (j2), which it waited for, was "
                                  "cancelled, because stage 'prepare' of "));
}

// The jobs are archived one by one, and the tombstones dropped one by one. What is left of a chain
// is the same as in a replay, and the name falls back to the chain before.
TEST(Chains, AreRememberedAsLongAsAnythingOfThemIs) {
  StagesWorld world;
  world.chain("llama", {{"c1", "x"}, {"c2", "y", {"c1"}}});
  world.succeed("c1");
  world.succeed("c2");
  world.chain("llama", {{"d1", "x"}, {"d2", "y", {"d1"}}});
  world.put(CancelJob{.job = JobId("d1"), .whole_chain = true});
  world.swept("d1", 1, "n0");
  const auto archive = [&](const char* id) {
    world.accept(decide(world.ledger, world.presence, ProposeArchive{.job = JobId(id)}, world.now,
                        world.limits));
    EXPECT_EQ(world.replayed(), dump(world.ledger)) << id;
  };
  const auto drop = [&](const char* id) {
    world.accept(decide(world.ledger, world.presence, ProposeDropTombstone{.job = JobId(id)},
                        world.now, world.limits));
    EXPECT_EQ(world.replayed(), dump(world.ledger)) << id;
  };
  for (const char* id : {"d2", "c1", "d1", "c2"}) archive(id);
  EXPECT_TRUE(world.ledger.jobs.empty());
  EXPECT_THAT(world.ledger.indexes.chains.at(JobId("d1")), ElementsAre(JobId("d1"), JobId("d2")));
  EXPECT_EQ(world.ledger.tombstones.at(JobId("d2")).chain_name, "llama");
  EXPECT_EQ(world.ledger.indexes.chain_names.at("llama"), JobId("d1"));
  drop("d1");
  EXPECT_THAT(world.ledger.indexes.chains.at(JobId("d1")), ElementsAre(JobId("d2")));
  drop("d2");
  EXPECT_EQ(world.ledger.indexes.chain_names.at("llama"), JobId("c1"));
  drop("c2");
  drop("c1");
  EXPECT_TRUE(world.ledger.indexes.chains.empty());
  EXPECT_TRUE(world.ledger.indexes.chain_names.empty());
  EXPECT_TRUE(world.ledger.indexes.chains_named.empty());
  EXPECT_FALSE(world.chain("llama", {{"e1", "x"}, {"e2", "y", {"e1"}}}).refusal);
}

// A finished stage is not submitted: an earlier job takes its place.
TEST(Chains, AStageThatIsDoneIsNoObstacle) {
  StagesWorld world;
  world.submit("a", SmallWorld::spec("earlier", 1, 1));
  world.succeed("a");
  EXPECT_FALSE(world.chain("llama", {{"j2", "train", {"a"}}, {"j3", "eval", {"j2"}}}).refusal);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("j3").phase, JobPhase::Queued);
}

}  // namespace
}  // namespace muster::core
