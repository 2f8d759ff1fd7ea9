// A start whose preparation hangs, as on a file system that is gone.
#include <future>

#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

const RunKey kOther{JobId("0123456789abd"), AttemptNo(1)};

class SlowStart : public ::testing::Test {
 protected:
  ~SlowStart() override {
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  // The preparation of the first run hangs until go_.
  void hang(HostOptions& options) {
    options.prepare = [back = back_](StartRequest request) {
      if (request.context.run == kRun) back.wait();
      return prepare_start(std::move(request));
    };
  }
  void run_another(HostIncarnation& agent) {
    agent.perform(StartRun{.run = kOther, .launch = shell_launch(dir_.path(), "true")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; },
        std::chrono::seconds(10), kOther));
  }
  TempDir dir_;
  std::promise<void> go_;
  std::shared_future<void> back_ = go_.get_future().share();
};

// Regression: the preparation ran on the agent's only loop. Every job's lease ended on a node where
// one job's file system hung.
TEST_F(SlowStart, HoldsUpNoOtherRun) {
  HostIncarnation agent(dir_.path() / "state", [this](HostOptions& options) { hang(options); });
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "exit 3")});
  EXPECT_EQ(agent.seen().worker, WorkerState::Spawned);
  run_another(agent);
  EXPECT_EQ(agent.seen().worker, WorkerState::Spawned);
  go_.set_value();
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  EXPECT_EQ(agent.seen().exits.at(0).code, 3);
}

TEST_F(SlowStart, CanBeStoppedAndNeverStarts) {
  HostIncarnation agent(dir_.path() / "state", [this](HostOptions& options) { hang(options); });
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "touch ran")});
  agent.perform(RefuseRun{.run = kRun,
                          .why = v1::START_FAILURE_UNSPECIFIED,
                          .text = "asked to stop before it was started"});
  EXPECT_EQ(agent.seen().worker, WorkerState::Never);
  go_.set_value();
  run_another(agent);
  EXPECT_EQ(agent.seen().worker, WorkerState::Never);
  EXPECT_FALSE(std::filesystem::exists(rundir::RunLayout(agent.run_dir()).launch()));
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "ran"));
}

// Regression: one of two nodes found that the checkpoint was torn, and the other one was stopped
// while it was still reading. Nobody confirmed the finding, and the job waited.
TEST_F(SlowStart, WhoIsStoppedWhileItReadsItsCheckpointSaysWhatItHasRead) {
  for (const bool whole : {false, true}) {
    SCOPED_TRACE(whole);
    std::promise<void> go;
    HostIncarnation agent(dir_.path() / (whole ? "whole" : "torn"),
                          [back = go.get_future().share()](HostOptions& options) {
                            options.prepare = [back](StartRequest request) {
                              back.wait();
                              return prepare_start(std::move(request));
                            };
                          });
    v1::NodeLaunch launch = shell_launch(dir_.path(), "touch ran");
    launch.mutable_resume()->set_dir((dir_.path() / "resume").string());
    launch.mutable_resume()->set_source((dir_.path() / "save").string());
    launch.mutable_resume()->set_step(10);
    launch.mutable_resume()->set_layout(whole ? "none" : "megatron");
    dir_.write("save/iter_0000010/mp_rank_00/model_optim_rng.pt", "half");
    agent.perform(StartRun{.run = kRun, .launch = launch});
    agent.perform(RefuseRun{.run = kRun,
                            .why = v1::START_FAILURE_UNSPECIFIED,
                            .text = "asked to stop before it was started"});
    EXPECT_EQ(agent.seen().worker, WorkerState::Spawned);
    go.set_value();
    ASSERT_TRUE(
        agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Never; }));
    ASSERT_TRUE(agent.seen().refused);
    EXPECT_EQ(agent.seen().refused->first,
              whole ? v1::START_FAILURE_UNSPECIFIED : v1::START_FAILURE_CHECKPOINT);
    EXPECT_EQ(agent.seen().refused_for.torn_size(), whole ? 0 : 1);
    EXPECT_FALSE(std::filesystem::exists(dir_.path() / "ran"));
  }
}

TEST_F(SlowStart, AStopDoesNotWaitForAReadThatHangs) {
  HostIncarnation agent(dir_.path() / "state", [this](HostOptions& options) { hang(options); });
  v1::NodeLaunch launch = shell_launch(dir_.path(), "touch ran");
  launch.mutable_resume()->set_dir((dir_.path() / "resume").string());
  agent.perform(StartRun{.run = kRun, .launch = launch});
  agent.perform(RefuseRun{.run = kRun,
                          .why = v1::START_FAILURE_UNSPECIFIED,
                          .text = "asked to stop before it was started"});
  ASSERT_TRUE(
      agent.wait_for([](const RunSeen& seen) { return seen.worker == WorkerState::Never; }));
  go_.set_value();
  run_another(agent);
  EXPECT_EQ(agent.seen().refused->first, v1::START_FAILURE_UNSPECIFIED);
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "ran"));
}

TEST_F(SlowStart, OfAnEarlierIncarnationStartsNothing) {
  {
    HostIncarnation agent(dir_.path() / "state", [this](HostOptions& options) { hang(options); });
    agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir_.path(), "touch ran")});
  }
  go_.set_value();
  HostIncarnation agent(dir_.path() / "state");
  EXPECT_EQ(agent.seen().worker, WorkerState::None)
      << "reconcile refuses it: nobody can claim it any more";
  run_another(agent);
  EXPECT_EQ(agent.seen().worker, WorkerState::None);
}

}  // namespace
}  // namespace muster::agent
