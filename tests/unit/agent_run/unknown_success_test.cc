// The facts of a run whose watch does not answer: its success file is on a file system that hangs.
#include "tests/unit/agent_run/saying_watch.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

TEST(HostUnknownSuccess, IsInTheFactUntilTheWatchAnswers) {
  const TempDir dir;
  SayingWatch watch;
  HostIncarnation agent(dir.path() / "state",
                        [&](HostOptions& options) { options.watch = &watch; });
  v1::NodeLaunch launch = shell_launch(dir.path(), "exit $RANK", 2);
  launch.mutable_watching()->set_success_file((dir.path() / "done").string());
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  const auto exits = [&] {
    std::map<std::uint32_t, v1::RankExited> found;
    agent.on_loop([&] {
      for (const v1::Fact& fact : agent.host().facts(kRun))
        if (fact.has_exited()) found[fact.exited().rank()] = fact.exited();
    });
    return found;
  };
  const v1::RankExited unanswered = exits().at(0);
  EXPECT_TRUE(unanswered.success_unknown());
  EXPECT_FALSE(exits().at(1).success_unknown()) << "it failed";
  agent.on_loop([&] {
    EXPECT_FALSE(agent.host().reportable(kRun, unanswered)) << "for 10 s the answer may come";
    agent.host().note_rank_end(kRun, 0, "", true);
  });
  EXPECT_FALSE(exits().at(0).success_unknown());
  EXPECT_TRUE(exits().at(0).success_seen());
}

// Regression: a job that had succeeded failed for want of its success, because the disk was full.
TEST(HostUnknownSuccess, WhatTheDiskDoesNotStoreIsInTheFact) {
  const TempDir dir;
  SayingWatch watch;
  HostIncarnation agent(dir.path() / "state",
                        [&](HostOptions& options) { options.watch = &watch; });
  v1::NodeLaunch launch = shell_launch(dir.path(), "exit 0", 1);
  launch.mutable_watching()->set_success_file((dir.path() / "done").string());
  agent.perform(StartRun{.run = kRun, .launch = launch});
  ASSERT_TRUE(agent.wait_for([](const RunSeen& seen) { return seen.swept; }));
  agent.on_loop([&] {
    const auto mark = rundir::RunLayout(agent.host().directory(kRun)).mark();
    std::filesystem::remove(mark);
    std::filesystem::create_directory(mark);  // as a disk that refuses it
    agent.host().note_rank_end(kRun, 0, "a line", true, v1::EVIDENCE_KIND_CAUSE, 7, 9);
    for (const v1::Fact& fact : agent.host().facts(kRun)) {
      if (!fact.has_exited()) continue;
      EXPECT_TRUE(agent.host().reportable(kRun, fact.exited()));
      EXPECT_TRUE(fact.exited().success_seen());
      EXPECT_FALSE(fact.exited().success_unknown());
      EXPECT_EQ(fact.exited().evidence(), "a line");
      EXPECT_EQ(fact.exited().step(), 7);
    }
  });
}

TEST(HostUnknownSuccess, ARunThatIsNotKnownHasNoFacts) {
  const TempDir dir;
  HostIncarnation agent(dir.path() / "state");
  agent.on_loop([&] { EXPECT_TRUE(agent.host().facts(kRun).empty()); });
}

}  // namespace
}  // namespace muster::agent
