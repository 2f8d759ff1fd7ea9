// From the checkpoint with which an attempt was placed to what its ranks begin with
// (controller/launch): its own, another job's, weights.
#include <gtest/gtest.h>

#include "controller/api/complete_spec.h"
#include "controller/launch/launch.h"

namespace muster::controller {
namespace {

JobToSubmit start_spec(v1::StartAs as, const std::string& from, const std::string& dir) {
  JobToSubmit job;
  job.spec.set_name("late");
  job.spec.set_engine("command");
  job.spec.mutable_start()->set_from(from);
  job.spec.mutable_start()->set_as(as);
  job.resolved.mutable_start()->set_dir(dir);
  return job;
}
core::ResumePoint point(std::uint32_t attempt, std::int64_t step, bool from_start) {
  return {.attempt = AttemptNo(attempt), .step = step, .path = "", .from_start = from_start};
}
engine::LaunchRequest request_for(const JobToSubmit& job,
                                  const std::optional<core::ResumePoint>& resume) {
  const std::vector<core::PlacedNode> nodes = {
      {.node = NodeName("a"), .devices = {0}, .rank_count = 1}};
  return launch_request(job.spec, job.resolved, JobId("new"), AttemptNo(2), nodes, 20'000, resume,
                        "/out");
}

TEST(StartLaunch, AsResumeItIsAsFromACheckpointOfItsOwn) {
  const auto spec = start_spec(v1::START_AS_RESUME, "job:base", "/out/base/checkpoints");
  const auto request = request_for(spec, point(3, 120, true));
  EXPECT_TRUE(request.resuming());
  EXPECT_TRUE(request.resume_from_start);
  EXPECT_EQ(request.resume_dir, "/out/new/resume/attempt-2");
  EXPECT_EQ(request.resume_source, "/out/base/checkpoints/attempt-3");
  EXPECT_EQ(request.resume_step, 120);
  EXPECT_EQ(request.start_dir, "");
  const auto named = start_spec(v1::START_AS_RESUME_OR_SCRATCH, "/data/base", "/data/base");
  EXPECT_EQ(request_for(named, point(0, 7, true)).resume_source, "/data/base")
      << "a save directory itself";
  EXPECT_FALSE(request_for(named, std::nullopt).resuming()) << "from the beginning";
}

TEST(StartLaunch, AsWeightsTheAttemptIsAFirstStart) {
  const auto spec = start_spec(v1::START_AS_WEIGHTS, "job:base", "/out/base/checkpoints");
  const auto request = request_for(spec, point(3, 120, true));
  EXPECT_FALSE(request.resuming());
  EXPECT_EQ(request.start_dir, "/out/new/resume/attempt-2") << "the links to that one step";
  EXPECT_EQ(request.resume_source, "/out/base/checkpoints/attempt-3");
  EXPECT_EQ(request.resume_step, 120);
  const auto named = start_spec(v1::START_AS_WEIGHTS, "/data/base", "/data/base");
  EXPECT_EQ(request_for(named, std::nullopt).start_dir, "/data/base")
      << "no step: the directory as it is";
  EXPECT_EQ(request_for(named, std::nullopt).resume_source, "");
  EXPECT_EQ(request_for(named, point(0, 7, true)).start_dir, "/out/new/resume/attempt-2");
}

TEST(StartLaunch, ACheckpointOfItsOwnWins) {
  for (const v1::StartAs as : {v1::START_AS_WEIGHTS, v1::START_AS_RESUME}) {
    const auto spec = start_spec(as, "/data/base", "/data/base");
    const auto request = request_for(spec, point(1, 40, false));
    EXPECT_TRUE(request.resuming());
    EXPECT_FALSE(request.resume_from_start);
    EXPECT_EQ(request.resume_source, "/out/new/checkpoints/attempt-1");
    EXPECT_EQ(request.start_dir, "");
  }
}

}  // namespace
}  // namespace muster::controller
