// Records that cannot be read, or hold what no message may: a run ends all the same.
#include <algorithm>
#include <chrono>

#include "common/io/frames.h"
#include "common/rundir/records.h"
#include "tests/unit/agent_host/support.h"

namespace muster::agent {
namespace {

// What the agent would do now, done, until there is nothing left to do. A sweep is asked for until
// it is over; nothing else is asked for many times.
void reconcile_to_the_end(HostLife& life) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::ptrdiff_t most = 5;
  while (most > 0 && std::chrono::steady_clock::now() < deadline) {
    std::vector<Action> actions;
    life.on_loop([&] {
      actions =
          reconcile({.instance = life.state().identity().instance, .boot_id = *process::boot_id()},
                    nullptr, life.host().seen(), false);
      for (const Action& action : actions) life.host().perform(action);
    });
    if (actions.empty()) return;
    most -= std::ranges::count_if(
        actions, [](const Action& action) { return !std::holds_alternative<SweepRun>(action); });
  }
  FAIL() << "the same is asked for again and again";
}

// Its PATH was in the sentence of the refusal, the sentence in the agent's own file, and the file
// could not be read by the agent itself: it refused the run again every second, and the job never
// ended.
TEST(Unreadable, APathThatIsNotTextIsInARefusalThatCanBeReadAgain) {
  const TempDir dir;
  const std::string path = "/nowhere/\xff";
  v1::NodeLaunch launch = shell_launch(dir.path(), "true");
  launch.mutable_ranks(0)->set_argv(0, "no-such-program");
  std::string text;
  {
    HostLife life(dir.path() / "state", [&](HostOptions& options) { options.path = path; });
    life.perform(StartRun{.run = kRun, .launch = launch});
    ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.refused.has_value(); }));
    reconcile_to_the_end(life);
    EXPECT_TRUE(life.seen().swept);
    text = life.seen().refused->second;
    EXPECT_NE(text.find(path), std::string::npos) << text;
    EXPECT_TRUE(life.troubles().empty()) << life.troubles().front();
  }
  HostLife life(dir.path() / "state");
  ASSERT_TRUE(life.seen().refused);
  EXPECT_EQ(life.seen().refused->second, text);
  EXPECT_TRUE(life.seen().swept);
}

// And one that runs, from a state directory of such a name: its launch record must be readable to
// the worker.
TEST(Unreadable, ARunWithSuchPathsRuns) {
  const TempDir dir;
  HostLife life(dir.path() / "state\xff",
                [](HostOptions& options) { options.path = "/usr/bin:/bin:/nowhere/\xff"; });
  life.perform(StartRun{.run = kRun, .launch = shell_launch(dir.path(), "echo here")});
  ASSERT_TRUE(life.wait_for(
      [](const RunSeen& seen) { return seen.swept && seen.worker == WorkerState::Dead; }));
  ASSERT_TRUE(life.seen().exits.contains(0))
      << life.seen().start_failed.value_or("no start failure");
  EXPECT_EQ(life.seen().exits.at(0).code, 0);
  EXPECT_EQ(read_text(rundir::RunLayout(life.run_dir()).rank_log(0)), "here\n");
}

// The agent's own file is damaged: what it cannot write down, it knows for as long as it lives, and
// the run ends.
TEST(Unreadable, ARunWithADamagedMarkFileEnds) {
  for (const std::string& damage :
       {std::string("not a frame of ours"), io::encode_frame("\x22\x7f")}) {
    const TempDir dir;
    {
      HostLife life(dir.path() / "state");
      const rundir::RunLayout layout(life.run_dir());
      ASSERT_TRUE(rundir::make_run(layout));
      rundir::v1::Claim claim;
      claim.set_boot_id(process::boot_id()->str());
      ASSERT_TRUE(rundir::write_claim(layout, claim));
      std::ofstream(layout.mark()) << damage;
    }
    HostLife life(dir.path() / "state");
    EXPECT_EQ(life.seen().worker, WorkerState::Never);
    EXPECT_FALSE(life.seen().refused);
    reconcile_to_the_end(life);
    ASSERT_TRUE(life.wait_for([](const RunSeen& seen) { return seen.refused && seen.swept; }));
    const auto said = life.troubles();
    ASSERT_EQ(said.size(), 1U);
    EXPECT_NE(said.front().find("its mark file is damaged"), std::string::npos) << said.front();
  }
}

}  // namespace
}  // namespace muster::agent
