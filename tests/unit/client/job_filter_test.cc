// `muster ps` of a cluster with a thousand finished jobs: which of them it shows, and in which
// order. Regression: labels were "for people and filters", but no filter used them.
#include "client/commands/job/job_filter.h"

#include <gmock/gmock.h>

#include <map>

namespace muster::client {
namespace {

v1::Job job(const std::string& name, v1::JobPhase phase,
            const std::map<std::string, std::string>& labels = {}) {
  v1::Job made;
  made.mutable_spec()->set_name(name);
  made.set_phase(phase);
  for (const auto& [label, value] : labels) (*made.mutable_spec()->mutable_labels())[label] = value;
  return made;
}
std::string names(const std::vector<v1::Job>& jobs) {
  std::string text;
  for (const v1::Job& one : jobs) text += one.spec().name();
  return text;
}

TEST(JobFilter, ByPhaseAndByGroupsOfThem) {
  const JobFilter some = job_filter({"queued", "failed"}, {}).value();
  EXPECT_TRUE(some.takes(job("a", v1::JOB_PHASE_QUEUED)));
  EXPECT_TRUE(some.takes(job("a", v1::JOB_PHASE_FAILED)));
  EXPECT_FALSE(some.takes(job("a", v1::JOB_PHASE_RUNNING)));
  EXPECT_TRUE(some.wants_ended());
  const JobFilter live = job_filter({"live"}, {}).value();
  EXPECT_TRUE(live.takes(job("a", v1::JOB_PHASE_DRAINING)));
  EXPECT_FALSE(live.takes(job("a", v1::JOB_PHASE_SUCCEEDED)));
  EXPECT_FALSE(live.wants_ended());
  EXPECT_TRUE(job_filter({"ended"}, {})->wants_ended());
  EXPECT_TRUE(job_filter({"queued", "queued"}, {})) << "said twice is no error";
  EXPECT_TRUE(job_filter({}, {})->takes(job("a", v1::JOB_PHASE_QUEUED)));
}

TEST(JobFilter, ByLabelsAllOfThem) {
  const JobFilter both = job_filter({}, {"team=llm", "urgent"}).value();
  EXPECT_TRUE(both.takes(job("a", v1::JOB_PHASE_QUEUED, {{"team", "llm"}, {"urgent", ""}})));
  EXPECT_FALSE(both.takes(job("a", v1::JOB_PHASE_QUEUED, {{"team", "llm"}})));
  EXPECT_FALSE(both.takes(job("a", v1::JOB_PHASE_QUEUED, {{"team", "vision"}, {"urgent", "yes"}})));
}

TEST(JobFilter, WrongWordsAreRefusedWithTheNearestOne) {
  EXPECT_EQ(job_filter({"runing"}, {}).error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(job_filter({"runing"}, {}).error().message,
              testing::HasSubstr("did you mean 'running'?"));
  EXPECT_FALSE(job_filter({}, {"=x"}));
  EXPECT_THAT(job_order("nmae").error().message, testing::HasSubstr("did you mean 'name'?"));
}

TEST(JobFilter, Orders) {
  std::vector<v1::Job> jobs = {job("c", v1::JOB_PHASE_SUCCEEDED), job("b", v1::JOB_PHASE_QUEUED),
                               job("a", v1::JOB_PHASE_FAILED), job("d", v1::JOB_PHASE_RUNNING)};
  sort_jobs(jobs, JobOrder::Newest);
  EXPECT_EQ(names(jobs), "cbad");
  sort_jobs(jobs, JobOrder::LiveFirst);
  EXPECT_EQ(names(jobs), "bdca") << "in each half as they came";
  sort_jobs(jobs, job_order("name").value());
  EXPECT_EQ(names(jobs), "abcd");
  for (v1::Job& one : jobs) one.mutable_progress()->set_step(one.spec().name() == "c" ? 9 : 1);
  sort_jobs(jobs, job_order("step").value());
  EXPECT_EQ(names(jobs), "cabd");
}

}  // namespace
}  // namespace muster::client
