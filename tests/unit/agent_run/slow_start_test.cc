// A start whose preparation hangs, as on a file system that is gone.
#include <future>

#include "tests/unit/agent_run/full_start.h"

namespace muster::agent {
namespace {

const RunKey kOther{JobId("0123456789abd"), AttemptNo(1)};

class SlowStart : public ::testing::Test {
 protected:
  ~SlowStart() override {
    EXPECT_TRUE(process::sweep_process_tag(rundir::kProcessTagVariable, run_process_tag(), 5'000));
  }
  // The first run hangs at this step until go_.
  void hang(HostOptions& options, StartStep at = StartStep::Check) {
    options.starts.before_step = [back = back_, at](const RunKey& run, StartStep step) {
      if (run == kRun && step == at) back.wait();
    };
  }
  void run_another(HostIncarnation& agent) {
    agent.perform(StartRun{.run = kOther, .launch = shell_launch(dir_.path(), "true")});
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; },
        std::chrono::seconds(10), kOther));
  }
  static StartNews news(HostIncarnation& agent) {
    StartNews found;
    agent.on_loop([&] { found = agent.host().start_news(kRun); });
    return found;
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
                            options.starts.before_step = [back](const RunKey&, StartStep step) {
                              if (step == StartStep::Check) back.wait();
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

// Whatever hangs, it costs the one run, and the node reports it before the controller gives up.
TEST_F(SlowStart, AHangInAnyStepIsRefusedAndCostsOnlyThatRun) {
  for (const StartStepRow& row : kStartSteps) {
    if (row.place == StepPlace::Loop) continue;
    SCOPED_TRACE(row.word);
    const TempDir dir;
    const FullStart full(dir.path());
    std::promise<void> go;
    HostIncarnation agent(dir.path() / "state", [&](HostOptions& options) {
      full.prepare(options);
      options.starts.before_step = [back = go.get_future().share(), at = row.step](
                                       const RunKey& run, StartStep step) {
        if (run == kRun && step == at) back.wait();
      };
      options.starts.bound = [at = row.step](StartStep step, const v1::NodeLaunch& order) {
        return order.job_name() == "full" && step == at ? Duration(std::chrono::milliseconds(1))
                                                        : Duration(std::chrono::hours(1));
      };
    });
    agent.perform(StartRun{.run = kRun, .launch = full.order()});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); }));
    const RunSeen seen = agent.seen();
    EXPECT_EQ(seen.worker, WorkerState::Never);
    EXPECT_EQ(seen.refused->first, v1::START_FAILURE_NODE);
    EXPECT_EQ(seen.refused_step, row.word);
    EXPECT_EQ(seen.refused->second.find("preparing the start: step '" + std::string(row.word) +
                                        "' is not done after "),
              0U)
        << seen.refused->second;
    EXPECT_NE(
        seen.refused->second.find(row.sentence(full.order()) + "; is that file system there?"),
        std::string::npos)
        << seen.refused->second;
    run_another(agent);
    go.set_value();
    agent.perform(SweepRun{.run = kRun, .why = v1::SWEPT_WHY_NEVER_STARTED});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& run) { return run.swept; }));
    EXPECT_FALSE(std::filesystem::exists(rundir::RunLayout(agent.run_dir()).launch()));
    agent.perform(ForgetRun{.run = kRun});
    EXPECT_FALSE(std::filesystem::exists(agent.run_dir()));
  }
}

// The run counts as being set up from its first long step to the end of the start.
TEST_F(SlowStart, ShowsTheStepThatItIsAt) {
  const FullStart full(dir_.path());
  v1::NodeLaunch launch = full.order();
  launch.clear_container();
  launch.clear_fetches();
  launch.clear_secrets();
  launch.clear_staged();
  struct Case {
    StartStep step;
    bool setting_up;
  };
  for (const Case& one : {Case{StartStep::Directories, false}, Case{StartStep::Code, true},
                          Case{StartStep::Record, true}}) {
    SCOPED_TRACE(row_of(one.step).word);
    const TempDir state;
    std::promise<void> go;
    HostIncarnation agent(state.path() / "state", [&](HostOptions& options) {
      options.starts.before_step = [back = go.get_future().share(), at = one.step](const RunKey&,
                                                                                   StartStep step) {
        if (step == at) back.wait();
      };
    });
    EXPECT_EQ(news(agent).step, "") << "nothing is being started";
    agent.perform(StartRun{.run = kRun, .launch = launch});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (news(agent).step != row_of(one.step).word && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_EQ(news(agent).step, row_of(one.step).word);
    EXPECT_EQ(agent.seen().worker, WorkerState::Spawned);
    if (one.setting_up) {
      EXPECT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.setting_up; }));
    } else {
      EXPECT_FALSE(agent.seen().setting_up);
    }
    go.set_value();
    ASSERT_TRUE(agent.wait_for(
        [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
    EXPECT_FALSE(agent.seen().setting_up);
    EXPECT_EQ(news(agent).step, "");
  }
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
