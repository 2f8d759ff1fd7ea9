// schedule.after over a real connection: typed names become ids, what cannot become an id is
// refused with the right code, and every answer shows what the job waits for.
#include "tests/unit/controller/hand_node.h"

namespace muster::controller {
namespace {

class After : public HandNodeTest {
 protected:
  grpc::Status submit_behind(const std::string& name, const std::vector<std::string>& others,
                             v1::SubmitJobResponse& response, const std::string& request_id = {}) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = behind(name, others);
    request.set_request_id(request_id);
    return stub_->SubmitJob(context().get(), request, &response);
  }
  static v1::JobSpec behind(const std::string& name, const std::vector<std::string>& others) {
    v1::JobSpec made = spec(name);
    for (const std::string& other : others) made.mutable_schedule()->add_after(other);
    return made;
  }
  grpc::Status refused(const std::vector<std::string>& others) {
    v1::SubmitJobResponse response;
    return submit_behind("refused", others, response);
  }
  void cancel(const std::string& name) {
    v1::CancelJobRequest request;
    request.set_job(name);
    request.set_reason("wrong data");
    v1::CancelJobResponse response;
    const grpc::Status status = stub_->CancelJob(context().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  // Removes the job from the ledger, including its tombstone: only the archive is left.
  void forget(const std::string& id) {
    put(core::ProposeArchive{.job = JobId(id)});
    put(core::ProposeDropTombstone{.job = JobId(id)});
    // Its rows are moved when the disk has nothing else to do.
    const auto end = std::chrono::steady_clock::now() + kPatience;
    v1::GetJobRequest request;
    request.set_job(id);
    v1::GetJobResponse response;
    while (!stub_->GetJob(context().get(), request, &response).ok())
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "it does not come to the archive";
  }
  std::vector<std::string> why(const std::string& name) {
    v1::ExplainJobRequest request;
    request.set_job(name);
    v1::ExplainJobResponse response;
    EXPECT_TRUE(stub_->ExplainJob(context().get(), request, &response).ok());
    return {response.lines().begin(), response.lines().end()};
  }
};

TEST_F(After, NamesBeginningsAndTheLastBecomeIds) {
  const std::string one = submitted("one"), two = submitted("two"), three = submitted("three");
  v1::SubmitJobResponse response;
  const grpc::Status status = submit_behind("late", {"one", two, "@last"}, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const v1::Job late = job("late");
  EXPECT_EQ(
      std::vector<std::string>(late.resolved().after().begin(), late.resolved().after().end()),
      (std::vector<std::string>{one, two, three}));
  EXPECT_EQ(late.phase(), v1::JOB_PHASE_QUEUED);
  EXPECT_EQ(why("late"),
            (std::vector<std::string>{"waits for job 'one' (" + one + "), which is queued",
                                      "waits for job 'two' (" + two + "), which is queued",
                                      "waits for job 'three' (" + three + "), which is queued"}));
}

TEST_F(After, AListSaysForWhomAJobStillWaits) {
  const std::string one = submitted("one");
  v1::SubmitJobResponse response;
  ASSERT_TRUE(submit_behind("late", {"one"}, response).ok());
  v1::ListJobsResponse listed;
  ASSERT_TRUE(stub_->ListJobs(context().get(), v1::ListJobsRequest(), &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 2);
  ASSERT_EQ(listed.jobs(0).resolved().after_size(), 1);
  EXPECT_EQ(listed.jobs(0).resolved().after(0), one);
  EXPECT_EQ(listed.jobs(1).resolved().after_size(), 0);
}

TEST_F(After, WhatCannotBeIsRefused) {
  const std::string one = submitted("one");
  submitted("two");
  const grpc::Status unknown = refused({"one", "nobody"});
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(unknown.error_message().starts_with(
      "submitting job 'refused': schedule.after[1]: finding job 'nobody': "))
      << unknown.error_message();
  EXPECT_NE(unknown.error_message().find("the newest are 'two' ("), std::string::npos)
      << unknown.error_message();
  EXPECT_EQ(refused({"0000000000000"}).error_code(), grpc::StatusCode::NOT_FOUND)
      << "it looks like an id of long ago: the archive was asked";
  EXPECT_EQ(refused({one.substr(0, 4)}).error_code(), grpc::StatusCode::ABORTED);
  const grpc::Status twice = refused({"one", one});
  EXPECT_EQ(twice.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(twice.error_message().find("the same job as schedule.after[0]: 'one'"),
            std::string::npos)
      << twice.error_message();
  EXPECT_EQ(refused({"refused"}).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "itself";
  EXPECT_EQ(refused({"No Job"}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused(std::vector<std::string>(65, "one")).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  cancel("one");
  const grpc::Status ended = refused({"one"});
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(ended.error_message().find("which was cancelled by owner: wrong data"),
            std::string::npos)
      << ended.error_message();
  v1::ListJobsRequest all;
  all.set_all(true);
  v1::ListJobsResponse listed;
  ASSERT_TRUE(stub_->ListJobs(context().get(), all, &listed).ok());
  EXPECT_EQ(listed.jobs_size(), 2) << "nothing of it became a job";
}

TEST_F(After, WhatOnlyTheArchiveKnowsCountsByHowItEnded) {
  node();
  const std::string good = submitted("good"), bad = submitted("bad");
  succeed(good);
  cancel(bad);
  swept(bad);
  ASSERT_EQ(job(bad).phase(), v1::JOB_PHASE_CANCELLED);
  forget(good);
  forget(bad);
  const grpc::Status ended = refused({bad});
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << ended.error_message();
  EXPECT_NE(ended.error_message().find("job 'bad' (" + bad + "), which was cancelled"),
            std::string::npos)
      << ended.error_message();
  v1::SubmitJobResponse response;
  const grpc::Status taken = submit_behind("late", {good}, response);
  ASSERT_TRUE(taken.ok()) << taken.error_message();
  EXPECT_EQ(job("late").phase(), v1::JOB_PHASE_LAUNCHING) << "there is nobody to wait for";
}

TEST_F(After, AnEndWithoutSuccessEndsThoseBehindIt) {
  const std::string one = submitted("one");
  v1::SubmitJobResponse response;
  ASSERT_TRUE(submit_behind("two", {"one"}, response).ok());
  ASSERT_TRUE(submit_behind("three", {"two"}, response).ok());
  cancel("one");
  EXPECT_EQ(job("two").phase(), v1::JOB_PHASE_CANCELLED);
  const v1::Job three = job("three");
  EXPECT_EQ(three.phase(), v1::JOB_PHASE_CANCELLED);
  EXPECT_TRUE(three.verdict().reason().ends_with("because job 'one' (" + one +
                                                 ") was cancelled by owner: wrong data"))
      << three.verdict().reason();
}

TEST_F(After, ARepeatedRequestIsTheSameJobWhateverBecameOfTheOthers) {
  submitted("one");
  v1::SubmitJobResponse first, second;
  ASSERT_TRUE(submit_behind("two", {"one"}, first, "retry-me").ok());
  cancel("one");
  const grpc::Status status = submit_behind("two", {"one"}, second, "retry-me");
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(second.repeated_request());
  EXPECT_EQ(first.job_id(), second.job_id());
}

TEST_F(After, APlanSaysForWhatItWouldWait) {
  const std::string one = submitted("one");
  v1::PlanJobRequest request;
  *request.mutable_spec() = behind("late", {"one"});
  v1::PlanJobResponse plan;
  const grpc::Status status = stub_->PlanJob(context().get(), request, &plan);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(plan.waits_for(), "for job 'one' (" + one + "), which is queued");
  EXPECT_EQ(plan.resolved().after(0), one);
  EXPECT_EQ(plan.ranks_size(), 1);
  cancel("one");
  EXPECT_EQ(stub_->PlanJob(context().get(), request, &plan).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  request.mutable_spec()->mutable_schedule()->set_after(0, "nobody");
  EXPECT_EQ(stub_->PlanJob(context().get(), request, &plan).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace muster::controller
