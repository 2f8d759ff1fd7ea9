// Chains and starts over a real connection: a submission becomes jobs with ids, directories and
// checkpoints, all or none; requests may use the chain's name.
#include <gmock/gmock.h>

#include "tests/unit/controller/hand_node.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ChainWire : public HandNodeTest {
 protected:
  static v1::JobSpec stage(const std::string& name, const std::vector<std::string>& after = {}) {
    v1::JobSpec made = spec("llama." + name);
    made.mutable_stage()->set_chain_name("llama");
    made.mutable_stage()->set_name(name);
    for (const std::string& other : after) made.mutable_schedule()->add_after("stage:" + other);
    return made;
  }
  grpc::Status submit_chain(const std::vector<v1::JobSpec>& stages, v1::SubmitJobResponse& response,
                            const std::string& request_id = {}, const std::string& done_stage = {},
                            const std::string& done_job = {}) {
    v1::SubmitJobRequest request;
    for (const v1::JobSpec& one : stages) *request.add_stages() = one;
    request.set_request_id(request_id);
    if (!done_stage.empty()) {
      request.add_done()->set_stage(done_stage);
      request.mutable_done(0)->set_job_id(done_job);
    }
    return stub_->SubmitJob(context().get(), request, &response);
  }
  v1::GetJobResponse shown(const std::string& ref) {
    v1::GetJobRequest request;
    request.set_job(ref);
    v1::GetJobResponse response;
    const grpc::Status status = stub_->GetJob(context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  std::size_t jobs() {
    v1::ListJobsRequest request;
    request.set_all(true);
    v1::ListJobsResponse listed;
    EXPECT_TRUE(stub_->ListJobs(context().get(), request, &listed).ok());
    return static_cast<std::size_t>(listed.jobs_size());
  }
  void saved(const std::string& id, std::int64_t step) {
    put(core::ProposeCheckpoint{.job = JobId(id),
                                .attempt = AttemptNo(1),
                                .step = step,
                                .path = "/c/iter_" + std::to_string(step),
                                .bytes = 1,
                                .shards = 1});
  }
};

TEST_F(ChainWire, StagesBecomeJobsThatNameEachOtherById) {
  v1::JobSpec train = stage("train", {"prepare"});
  train.mutable_launch()->add_run("${stages.prepare.out}");
  v1::SubmitJobResponse response;
  const grpc::Status status = submit_chain({stage("prepare"), train}, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.stages_size(), 2);
  EXPECT_EQ(response.job_id(), response.stages(0).job_id());
  EXPECT_GT(response.index(), 0U);
  EXPECT_EQ(response.stages(1).stage(), "train");
  EXPECT_EQ(response.stages(1).phase(), v1::JOB_PHASE_QUEUED);
  const v1::Job second = job("llama.train");
  EXPECT_EQ(second.id(), response.stages(1).job_id());
  EXPECT_EQ(second.resolved().stage().chain(), response.job_id());
  EXPECT_THAT(second.resolved().after(), ElementsAre(response.job_id()));
  ASSERT_EQ(second.resolved().stage().dirs_size(), 1);
  EXPECT_EQ(second.resolved().stage().dirs(0).out(), "/out/" + response.job_id());
  v1::ListJobsResponse listed;
  ASSERT_TRUE(stub_->ListJobs(context().get(), v1::ListJobsRequest(), &listed).ok());
  EXPECT_EQ(listed.jobs(0).spec().stage().chain_name(), "llama");
  EXPECT_EQ(listed.jobs(0).spec().stage().name(), "train");
  EXPECT_FALSE(listed.jobs(0).resolved().has_stage());
}

TEST_F(ChainWire, AllAreTakenOrNone) {
  v1::SubmitJobResponse response;
  EXPECT_THAT(
      submit_chain({stage("train", {"prepare"}), stage("prepare")}, response).error_message(),
      HasSubstr("stages.train.schedule.after[0]: stage 'prepare'"));
  v1::JobSpec wide = stage("train", {"prepare"});
  wide.mutable_resources()->set_nodes(4);
  node();
  const grpc::Status never = submit_chain({stage("prepare"), wide}, response);
  EXPECT_EQ(never.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << never.error_message();
  EXPECT_EQ(jobs(), 0U);
  v1::SubmitJobRequest both;
  *both.mutable_spec() = spec("one");
  *both.add_stages() = stage("prepare");
  EXPECT_EQ(stub_->SubmitJob(context().get(), both, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ChainWire, ARepeatedRequestIsTheSameChain) {
  v1::SubmitJobResponse first, second;
  ASSERT_TRUE(
      submit_chain({stage("prepare"), stage("train", {"prepare"})}, first, "retry-me").ok());
  const grpc::Status status =
      submit_chain({stage("prepare"), stage("train", {"prepare"})}, second, "retry-me");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(second.repeated_request());
  EXPECT_EQ(first.job_id(), second.job_id());
  ASSERT_EQ(second.stages_size(), 2);
  EXPECT_EQ(second.stages(1).job_id(), first.stages(1).job_id());
  EXPECT_EQ(jobs(), 2U);
}

TEST_F(ChainWire, ItsNameIsAskedByAndCancelled) {
  node();
  v1::SubmitJobResponse response;
  ASSERT_TRUE(
      submit_chain({stage("prepare"), stage("train", {"prepare"}), stage("eval", {"train"})},
                   response)
          .ok());
  v1::GetJobResponse whole = shown("llama");
  EXPECT_TRUE(whole.asked_for_chain());
  EXPECT_EQ(whole.job().spec().name(), "llama.prepare");
  ASSERT_EQ(whole.chain_size(), 3);
  EXPECT_EQ(whole.chain(0).phase(), v1::JOB_PHASE_LAUNCHING);
  const v1::GetJobResponse one = shown("llama.eval");
  EXPECT_FALSE(one.asked_for_chain());
  EXPECT_EQ(one.chain_size(), 3);
  v1::SubmitJobRequest behind;
  *behind.mutable_spec() = spec("late");
  behind.mutable_spec()->mutable_schedule()->add_after("llama");
  v1::SubmitJobResponse refused;
  const grpc::Status which = stub_->SubmitJob(context().get(), behind, &refused);
  EXPECT_EQ(which.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(which.error_message(),
            "submitting job 'late': schedule.after[0]: 'llama' is a chain; name one of its stages, "
            "as llama.STAGE (`muster show llama` lists them)");
  succeed(response.job_id());
  EXPECT_EQ(shown("llama").job().spec().name(), "llama.train");
  v1::CancelJobRequest request;
  request.set_job("llama");
  v1::CancelJobResponse cancelled;
  const grpc::Status status = stub_->CancelJob(context().get(), request, &cancelled);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(cancelled.job_id(), response.stages(1).job_id());
  EXPECT_EQ(job("llama.eval").phase(), v1::JOB_PHASE_CANCELLED);
  EXPECT_EQ(job("llama.prepare").phase(), v1::JOB_PHASE_SUCCEEDED);
  EXPECT_EQ(shown(submitted("alone")).chain_size(), 0);
}

TEST_F(ChainWire, AStageThatIsDoneNeedNotRunAgain) {
  node();
  v1::JobSpec prepare = stage("prepare");
  prepare.mutable_stage()->set_creates("tokens");
  prepare.mutable_stage()->set_key(std::string(64, 'a'));
  prepare.mutable_success()->set_exit0(true);
  v1::SubmitJobResponse first, second;
  ASSERT_TRUE(submit_chain({prepare}, first).ok());
  v1::FindStagesRequest wanted;
  wanted.add_stages()->set_job_name("llama.prepare");
  wanted.mutable_stages(0)->set_key(prepare.stage().key());
  v1::FindStagesResponse found;
  ASSERT_TRUE(stub_->FindStages(context().get(), wanted, &found).ok());
  EXPECT_EQ(found.stages_size(), 0) << "it runs";
  succeed(first.job_id());
  ASSERT_TRUE(stub_->FindStages(context().get(), wanted, &found).ok());
  ASSERT_EQ(found.stages_size(), 1);
  EXPECT_EQ(found.stages(0).job_id(), first.job_id());
  EXPECT_EQ(found.stages(0).creates(), "/out/" + first.job_id() + "/tokens");
  EXPECT_TRUE(found.stages(0).has_ended_at());
  const grpc::Status status =
      submit_chain({stage("train", {"prepare"})}, second, {}, "prepare", first.job_id());
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(second.stages_size(), 1);
  EXPECT_EQ(job("llama.train").phase(), v1::JOB_PHASE_LAUNCHING) << "there is nobody to wait for";
  EXPECT_EQ(job("llama.train").resolved().stage().dirs(0).out(), "/out/" + first.job_id());
  // The archive shows the same.
  put(core::ReportLogsCollected{
      .job = JobId(first.job_id()), .attempt = AttemptNo(1), .node = NodeName("n1")});
  put(core::ProposeArchive{.job = JobId(first.job_id())});
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "it does not come to the archive";
    ASSERT_TRUE(stub_->FindStages(context().get(), wanted, &found).ok());
  } while (found.stages_size() == 0);
  EXPECT_EQ(found.stages(0).creates(), "/out/" + first.job_id() + "/tokens");
  wanted.mutable_stages(0)->set_key(std::string(64, 'b'));
  ASSERT_TRUE(stub_->FindStages(context().get(), wanted, &found).ok());
  EXPECT_EQ(found.stages_size(), 0) << "made from something else";
}

TEST_F(ChainWire, AJobGoesOnFromAnother) {
  node();
  const std::string base = submitted("base");
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec("more");
  request.mutable_spec()->mutable_start()->set_from("job:base");
  request.mutable_spec()->mutable_start()->set_as(v1::START_AS_RESUME);
  v1::SubmitJobResponse response;
  const grpc::Status none = stub_->SubmitJob(context().get(), request, &response);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(none.error_message(), "submitting job 'more': start.from: job 'base' (" + base +
                                      ") has no whole checkpoint; wait until it has saved one, or "
                                      "write start.as: resume-or-scratch to begin anew without");
  saved(base, 10);
  saved(base, 20);
  succeed(base);
  const grpc::Status status = stub_->SubmitJob(context().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const v1::Job more = job("more");
  EXPECT_EQ(more.resolved().start().dir(), "/out/" + base + "/checkpoints");
  EXPECT_EQ(more.resolved().start().point().step(), 20);
  ASSERT_EQ(more.attempts_size(), 1);
  EXPECT_EQ(more.attempts(0).resume().step(), 20);
  EXPECT_TRUE(more.attempts(0).resume().from_start());
  v1::GetRankLaunchRequest asked;
  asked.set_job("more");
  v1::GetRankLaunchResponse launch;
  ASSERT_TRUE(stub_->GetRankLaunch(context().get(), asked, &launch).ok());
  std::string dir;
  for (const v1::EnvValue& value : launch.launch().env())
    if (value.name() == "MUSTER_RESUME_DIR") dir = value.value();
  EXPECT_EQ(dir, "/out/" + response.job_id() + "/resume/attempt-1");
}

TEST_F(ChainWire, APlanOfAStageShowsWhatDoesNotExistYet) {
  v1::JobSpec train = stage("train", {"prepare"});
  train.mutable_launch()->add_run("${stages.prepare.out}/tokens");
  train.mutable_launch()->add_run("${out}");
  v1::PlanJobRequest request;
  *request.mutable_spec() = train;
  *request.add_stages() = stage("prepare");
  *request.add_stages() = train;
  v1::PlanJobResponse plan;
  const grpc::Status status = stub_->PlanJob(context().get(), request, &plan);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(plan.waits_for(), "for stage 'prepare'");
  ASSERT_EQ(plan.ranks_size(), 1);
  EXPECT_THAT(plan.ranks(0).argv(),
              ElementsAre("true", "/out/<id of prepare>/tokens", "/out/<id of train>"));
  EXPECT_EQ(plan.resolved().after(0), "<id of prepare>");
  request.mutable_stages(1)->mutable_start()->set_from("stage:prepare");
  request.mutable_stages(1)->mutable_start()->set_as(v1::START_AS_RESUME);
  request.mutable_stages(1)->mutable_launch()->add_run("${resume.dir}");
  ASSERT_TRUE(stub_->PlanJob(context().get(), request, &plan).ok());
  EXPECT_EQ(
      plan.waits_for(),
      "for stage 'prepare', whose newest checkpoint is not known yet (shown as that of step 0)");
  EXPECT_EQ(plan.ranks(0).argv(3), "/out/<id of train>/resume/attempt-1");
  request.mutable_spec()->mutable_stage()->set_name("nobody");
  EXPECT_EQ(stub_->PlanJob(context().get(), request, &plan).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace muster::controller
