// The current state of a chain, and which job its name refers to.
#include "controller/api/chain_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/api/find_stages.h"
#include "controller/api/job_ref.h"

namespace muster::controller {
namespace {

using core::JobPhase;

class ChainView : public testing::Test {
 protected:
  core::JobRecord& add(const std::string& id, const std::string& stage, JobPhase phase,
                       const std::string& chain = "0aaaaaaaaaa01") {
    core::JobRecord record;
    record.id = JobId(id);
    record.phase = phase;
    record.spec.set_name("llama." + stage);
    record.resolved.mutable_stage()->set_chain(chain);
    record.spec.mutable_stage()->set_chain_name("llama");
    record.spec.mutable_stage()->set_name(stage);
    if (!core::is_final(phase)) ledger_.indexes.live_names["llama." + stage] = record.id;
    joined(id, chain);
    return ledger_.jobs.insert_or_assign(record.id, std::move(record)).first->second;
  }
  void archived(const std::string& id, const std::string& stage, JobPhase phase,
                const std::string& chain = "0aaaaaaaaaa01") {
    ledger_.tombstones[JobId(id)] = {.id = JobId(id),
                                     .name = "llama." + stage,
                                     .phase = phase,
                                     .chain = JobId(chain),
                                     .chain_name = "llama"};
    joined(id, chain);
  }
  void joined(const std::string& id, const std::string& chain) {
    std::vector<JobId>& jobs = ledger_.indexes.chains[JobId(chain)];
    if (std::ranges::find(jobs, JobId(id)) == jobs.end()) jobs.emplace_back(id);
    ledger_.indexes.chain_names["llama"] = JobId(chain);
    ledger_.indexes.chains_named.insert({"llama", JobId(chain)});
  }
  std::string matters() { return stage_that_matters(ledger_, JobId("0aaaaaaaaaa01")).str(); }
  static core::Verdict consequence() { return {.signature = "predecessor"}; }

  core::Ledger ledger_;
  const std::string a_ = "0aaaaaaaaaa01", b_ = "0aaaaaaaaaa02", c_ = "0aaaaaaaaaa03";
};

TEST_F(ChainView, TheStageThatMattersMost) {
  add(a_, "a", JobPhase::Queued);
  add(b_, "b", JobPhase::Queued);
  EXPECT_EQ(matters(), a_) << "the next that waits";
  add(a_, "a", JobPhase::Succeeded);
  EXPECT_EQ(matters(), b_);
  add(c_, "c", JobPhase::Running);
  EXPECT_EQ(matters(), c_) << "the one that runs";
  add(b_, "b", JobPhase::Failed);
  EXPECT_EQ(matters(), c_) << "it still runs";
  add(c_, "c", JobPhase::Cancelled).verdict = consequence();
  EXPECT_EQ(matters(), b_) << "what the others died of";
  add(a_, "a", JobPhase::Cancelled).verdict = consequence();
  add(b_, "b", JobPhase::Cancelled);
  EXPECT_EQ(matters(), b_) << "cancelled itself";
  for (const auto& [id, stage] : {std::pair{a_, "a"}, std::pair{b_, "b"}, std::pair{c_, "c"}})
    add(id, stage, JobPhase::Succeeded);
  EXPECT_EQ(matters(), c_) << "the last";
}

TEST_F(ChainView, AJobBetweenTwoAttemptsRuns) {
  add(a_, "a", JobPhase::Queued);
  add(b_, "b", JobPhase::Queued).attempts.emplace_back();
  EXPECT_EQ(matters(), b_);
}

TEST_F(ChainView, ShowsWhatIsArchivedToo) {
  archived(a_, "a", JobPhase::Succeeded);
  add(b_, "b", JobPhase::Running);
  const auto stages = chain_stages(ledger_, JobId(a_));
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].stage(), "a");
  EXPECT_EQ(stages[0].job_id(), a_);
  EXPECT_EQ(stages[0].phase(), v1::JOB_PHASE_SUCCEEDED);
  EXPECT_EQ(stages[1].stage(), "b");
  EXPECT_EQ(stages[1].phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_TRUE(chain_stages(ledger_, JobId("nobody")).empty());
}

TEST_F(ChainView, ItsNameIsTypedForAJob) {
  add(a_, "a", JobPhase::Succeeded);
  add(b_, "b", JobPhase::Running);
  auto ref = resolve_job(ledger_, "llama");
  ASSERT_TRUE(ref) << ref.error().message;
  EXPECT_EQ(ref->id.str(), b_);
  EXPECT_EQ(ref->chain.str(), a_);
  EXPECT_TRUE(resolve_job(ledger_, "llama.b")->chain.empty());
  // A finished job of the same name, newer than the chain: the name refers to the one that runs.
  core::JobRecord& other = add("0aaaaaaaaab09", "x", JobPhase::Failed, "0aaaaaaaaab09");
  other.spec.set_name("llama");
  other.spec.clear_stage();
  ledger_.indexes.chains.erase(JobId("0aaaaaaaaab09"));
  ledger_.indexes.chains_named.erase({"llama", JobId("0aaaaaaaaab09")});
  ledger_.indexes.chain_names["llama"] = JobId(a_);
  EXPECT_EQ(resolve_job(ledger_, "llama")->id.str(), b_);
  ledger_.indexes.live_names.clear();
  add(b_, "b", JobPhase::Succeeded);
  ledger_.indexes.live_names.clear();
  EXPECT_EQ(resolve_job(ledger_, "llama")->id.str(), "0aaaaaaaaab09")
      << "both have ended: the newer one";
  ledger_.jobs.erase(JobId("0aaaaaaaaab09"));
  EXPECT_EQ(resolve_job(ledger_, "llama")->id.str(), b_);
  ledger_.jobs.clear();
  archived(a_, "a", JobPhase::Succeeded);
  archived(b_, "b", JobPhase::Succeeded);
  EXPECT_TRUE(resolve_job(ledger_, "llama")->archived);
}

// The beginning of a chain's name is also the beginning of all its stages' names. It refers to the
// chain, and nothing is ambiguous.
TEST_F(ChainView, TheBeginningOfItsNameIsForReading) {
  add(a_, "a", JobPhase::Succeeded);
  add(b_, "b", JobPhase::Running);
  const auto ref = resolve_job(ledger_, "lla", RefFor::Reading);
  ASSERT_TRUE(ref) << ref.error().message;
  EXPECT_EQ(ref->chain.str(), a_);
  EXPECT_EQ(ref->id.str(), b_);
  EXPECT_EQ(resolve_job(ledger_, "llama.a", RefFor::Reading)->id.str(), a_);
  EXPECT_EQ(resolve_job(ledger_, "lla").error().code, ErrorCode::NotFound);
}

// A name refers to the newest chain with that name; the id of any of its jobs refers to that chain
// for ever.
TEST_F(ChainView, ItsIdIsTypedForAJob) {
  add(a_, "a", JobPhase::Failed);
  add(b_, "b", JobPhase::Cancelled).verdict = consequence();
  archived("0aaaaaaaaab04", "a", JobPhase::Succeeded, "0aaaaaaaaab04");
  EXPECT_EQ(resolve_job(ledger_, "llama")->chain.str(), "0aaaaaaaaab04");
  for (const std::string& typed :
       {"chain:" + a_, "chain:" + b_, std::string("chain:0aaaaaaaaaa")}) {
    const auto ref = resolve_job(ledger_, typed);
    ASSERT_TRUE(ref) << ref.error().message;
    EXPECT_EQ(ref->chain.str(), a_) << typed;
    EXPECT_EQ(ref->id.str(), a_) << "the stage that matters";
  }
  EXPECT_TRUE(resolve_job(ledger_, "chain:0aaaaaaaaab04")->archived);
  EXPECT_EQ(resolve_job(ledger_, "chain:0aaa").error().code, ErrorCode::Conflict);
  for (const std::string typed : {"chain:", "chain:nobody", "chain:llama"})
    EXPECT_EQ(resolve_job(ledger_, typed).error().code, ErrorCode::NotFound) << typed;
}

TEST_F(ChainView, TheNewestStageOfANameIsFoundOverChains) {
  archived(a_, "a", JobPhase::Succeeded);
  add(b_, "b", JobPhase::Failed);
  add("0aaaaaaaaab04", "b", JobPhase::Succeeded, "0aaaaaaaaab04");
  EXPECT_EQ(newest_stage(ledger_, "llama.a").str(), a_) << "the newer chain did not run it again";
  EXPECT_EQ(newest_stage(ledger_, "llama.b").str(), "0aaaaaaaaab04");
  EXPECT_TRUE(newest_stage(ledger_, "llama.c").empty());
  EXPECT_TRUE(newest_stage(ledger_, "lama.a").empty());
  EXPECT_TRUE(newest_stage(ledger_, "llama").empty());
}

}  // namespace
}  // namespace muster::controller
