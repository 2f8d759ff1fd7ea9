// Records that cannot be read, or that contain what no message may contain: a run ends all the
// same.
#include <algorithm>
#include <chrono>

#include "common/io/frames.h"
#include "common/rundir/records.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

// Performs the agent's actions until there are none left. A sweep is repeated until it is over; no
// other action is repeated many times.
void reconcile_to_the_end(HostIncarnation& agent) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::ptrdiff_t most = 5;
  while (most > 0 && std::chrono::steady_clock::now() < deadline) {
    std::vector<Action> actions;
    agent.on_loop([&] {
      actions =
          reconcile({.instance = agent.state().identity().instance, .boot_id = *process::boot_id()},
                    nullptr, agent.host().seen(), false);
      for (const Action& action : actions) agent.host().perform(action);
    });
    if (actions.empty()) return;
    most -= std::ranges::count_if(
        actions, [](const Action& action) { return !std::holds_alternative<SweepRun>(action); });
  }
  FAIL() << "the same is asked for again and again";
}

// Regression: the agent's PATH was in the sentence of the refusal, the sentence was in the agent's
// own file, and the agent could not read that file. It refused the run again every second, and the
// job never ended.
TEST(Unreadable, APathThatIsNotTextIsInARefusalThatCanBeReadAgain) {
  const TempDir dir;
  const std::string path = "/nowhere/\xff";
  v1::NodeLaunch launch = shell_launch(dir.path(), "true");
  launch.mutable_ranks(0)->set_argv(0, "no-such-program");
  std::string text;
  {
    HostIncarnation agent(dir.path() / "state", [&](HostOptions& options) { options.path = path; });
    agent.perform(StartRun{.run = kRun, .launch = launch});
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); }));
    reconcile_to_the_end(agent);
    EXPECT_TRUE(agent.seen().swept);
    text = agent.seen().refused->second;
    EXPECT_NE(text.find(path), std::string::npos) << text;
    EXPECT_TRUE(agent.troubles().empty()) << agent.troubles().front();
  }
  HostIncarnation agent(dir.path() / "state");
  ASSERT_TRUE(agent.seen().refused);
  EXPECT_EQ(agent.seen().refused->second, text);
  EXPECT_TRUE(agent.seen().swept);
}

// The same for a run that starts, from a state directory with such a name: the worker must be able
// to read its launch record.
TEST(Unreadable, ARunWithSuchPathsRuns) {
  const TempDir dir;
  HostIncarnation agent(dir.path() / "state\xff",
                        [](HostOptions& options) { options.path = "/usr/bin:/bin:/nowhere/\xff"; });
  agent.perform(StartRun{.run = kRun, .launch = shell_launch(dir.path(), "echo here")});
  ASSERT_TRUE(agent.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  ASSERT_TRUE(agent.seen().exits.contains(0))
      << agent.seen().start_failed.value_or("no start failure");
  EXPECT_EQ(agent.seen().exits.at(0).code, 0);
  EXPECT_EQ(read_text(rundir::RunLayout(agent.run_dir()).rank_log(0)), "here\n");
}

// The agent's own file is damaged: it remembers what it cannot write as long as it lives, and the
// run ends.
TEST(Unreadable, ARunWithADamagedMarkFileEnds) {
  for (const std::string& damage :
       {std::string("not a frame of ours"), io::encode_frame("\x22\x7f")}) {
    const TempDir dir;
    {
      HostIncarnation agent(dir.path() / "state");
      const rundir::RunLayout layout(agent.run_dir());
      ASSERT_TRUE(rundir::make_run(layout));
      rundir::v1::Claim claim;
      claim.set_boot_id(process::boot_id()->str());
      ASSERT_TRUE(rundir::write_claim(layout, claim));
      std::ofstream(layout.mark()) << damage;
    }
    HostIncarnation agent(dir.path() / "state");
    EXPECT_EQ(agent.seen().worker, WorkerState::Never);
    EXPECT_FALSE(agent.seen().refused);
    reconcile_to_the_end(agent);
    ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.refused && seen.swept; }));
    const auto logged = agent.troubles();
    ASSERT_EQ(logged.size(), 1U);
    EXPECT_NE(logged.front().find("its mark file is damaged"), std::string::npos) << logged.front();
  }
}

}  // namespace
}  // namespace muster::agent
