#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "agent/core/reconcile.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

const RunKey kRun{JobId("0123456789abc"), AttemptNo(3)};

WallTime at(int ms) { return WallTime(std::chrono::seconds(1'700'000'000)) + milliseconds(ms); }

RunSeen started_run() {
  RunSeen seen;
  seen.launch_sound = true;
  seen.worker = WorkerState::Alive;
  seen.worker_pid = 77;
  seen.ranks = {4, 5, 6};
  seen.pids = {{4, 104}, {5, 105}, {6, 106}};
  seen.started = true;
  seen.started_at = at(1);
  return seen;
}

std::vector<int> kinds(const std::vector<v1::Fact>& facts) {
  std::vector<int> result;
  for (const auto& fact : facts) result.push_back(fact.what_case());
  return result;
}

TEST(Facts, NothingYet) {
  RunSeen seen;
  seen.worker = WorkerState::Spawned;
  seen.ranks = {0};
  EXPECT_TRUE(facts_of(kRun, seen).empty());
}

TEST(Facts, StartedCarriesPidsInLocalOrderAndTheWorker) {
  const auto facts = facts_of(kRun, started_run());
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0].job_id(), "0123456789abc");
  EXPECT_EQ(facts[0].attempt(), 3U);
  EXPECT_EQ(facts[0].at().seconds(), 1'700'000'000);
  EXPECT_EQ(facts[0].at().nanos(), 1'000'000);
  EXPECT_EQ(facts[0].started().worker_pid(), 77U);
  EXPECT_EQ(std::vector<std::uint64_t>(facts[0].started().pids().begin(),
                                       facts[0].started().pids().end()),
            (std::vector<std::uint64_t>{104, 105, 106}));
}

// Regression: the node's clock was set back between two exits. The rank that died because of the
// first exit seemed to be the cause.
TEST(Facts, TheFirstToEndComesFirstWhateverTheWallClockSays) {
  RunSeen seen = started_run();
  const auto boot = [](int ms) { return BootTime(milliseconds(ms)); };
  seen.exits[6] = {.rank = 6, .code = 1, .at = at(3'600'000), .boot = boot(500)};
  seen.exits[4] = {.rank = 4, .code = -1, .signal = 6, .at = at(20), .boot = boot(510)};
  const auto facts = facts_of(kRun, seen);
  ASSERT_EQ(facts.size(), 3U);
  EXPECT_EQ(facts[1].exited().rank(), 6U);
  EXPECT_EQ(facts[2].exited().rank(), 4U);
}

// Nodes' wall clocks differ by seconds, and are set while ranks run. So the time since something
// ended is measured by the boot clock, which nobody sets.
TEST(Facts, AnAgeIsByTheBootClockWhereThatCanTell) {
  const Self self{.instance = InstanceId("i"), .boot_id = BootId("b")};
  RunSeen seen = started_run();
  seen.boot_id = self.boot_id;
  seen.exits[4] = {.rank = 4,
                   .code = 1,
                   .killed_unasked = true,
                   .at = at(3'600'000),
                   .boot = BootTime(milliseconds(5'000))};
  seen.auxiliary_exits = {
      {.name = "scheduler", .code = 2, .at = at(3'600'000), .boot = BootTime(milliseconds(5'500))}};
  const Now now{.wall = at(9'000), .boot = BootTime(milliseconds(6'250))};
  const auto ages = [&] {
    v1::Facts facts;
    for (v1::Fact& fact : facts_of(kRun, seen)) *facts.add_facts() = std::move(fact);
    set_ages(facts, self, {{kRun, seen}}, now);
    std::vector<std::int64_t> ms;
    for (const v1::Fact& fact : facts.facts())
      ms.push_back(fact.age().seconds() * 1000 + fact.age().nanos() / 1'000'000);
    return ms;
  };
  EXPECT_EQ(ages(), (std::vector<std::int64_t>{8'999, 1'250, 750}))
      << "started, the exit, the auxiliary process's";
  EXPECT_TRUE(facts_of(kRun, seen)[1].exited().killed_unasked());
  // That clock began anew: the wall clock is used instead, and no age is negative.
  seen.boot_id = BootId("before");
  EXPECT_EQ(ages(), (std::vector<std::int64_t>{8'999, 0, 0}));
}

TEST(Facts, AnExitCarriesWhatItsEvidenceSpeaksOf) {
  RunSeen seen = started_run();
  seen.exits[4] = {.rank = 4,
                   .code = 1,
                   .evidence = "Connection reset by peer",
                   .evidence_kind = v1::EVIDENCE_KIND_CONSEQUENCE};
  EXPECT_EQ(facts_of(kRun, seen).back().exited().evidence_kind(), v1::EVIDENCE_KIND_CONSEQUENCE);
}

// What an auxiliary process's end means for the attempt: a table over how it ended and which ranks
// existed.
TEST(Facts, AAuxiliariesEndIsOneWhenItBreaksTheAttempt) {
  const auto boot = [](int ms) { return BootTime(milliseconds(ms)); };
  struct Row {
    const char* story;
    AuxiliaryExitSeen exit;
    std::map<std::uint32_t, ExitSeen> exits;
    bool reported;
  };
  const ExitSeen before{.boot = boot(10)}, after{.boot = boot(30)};
  const Row rows[] = {
      {"status 3 while ranks run", {.name = "s", .code = 3, .boot = boot(20)}, {}, true},
      {"a signal while one runs",
       {.name = "s", .code = -1, .signal = 6, .boot = boot(20)},
       {{4, before}, {5, before}},
       true},
      {"they ended of it",
       {.name = "s", .code = 3, .boot = boot(20)},
       {{4, after}, {5, after}, {6, after}},
       true},
      {"a good end", {.name = "s", .code = 0, .boot = boot(20)}, {}, false},
      {"muster's stop",
       {.name = "s", .code = -1, .signal = 15, .stop_requested = true, .boot = boot(20)},
       {},
       false},
      {"after all ranks",
       {.name = "s", .code = 1, .boot = boot(20)},
       {{4, before}, {5, before}, {6, before}},
       false},
  };
  for (const Row& row : rows) {
    RunSeen seen = started_run();
    seen.exits = row.exits;
    seen.auxiliary_exits = {row.exit};
    const auto facts = facts_of(kRun, seen);
    EXPECT_EQ(std::ranges::count_if(facts, &v1::Fact::has_auxiliary_exited), row.reported ? 1 : 0)
        << row.story;
  }
}

TEST(Facts, AAuxiliariesEndStandsInItsPlaceAmongTheExits) {
  RunSeen seen = started_run();
  seen.exits[4] = {.rank = 4, .code = 1, .at = at(10), .boot = BootTime(milliseconds(10))};
  seen.exits[5] = {.rank = 5,
                   .code = -1,
                   .signal = 15,
                   .stop_requested = true,
                   .at = at(30),
                   .boot = BootTime(milliseconds(30))};
  seen.auxiliary_exits = {{.name = "scheduler",
                           .code = 2,
                           .at = at(20),
                           .boot = BootTime(milliseconds(20)),
                           .evidence = "Bind failed"}};
  const auto facts = facts_of(kRun, seen);
  ASSERT_EQ(kinds(facts), (std::vector<int>{v1::Fact::kStarted, v1::Fact::kExited,
                                            v1::Fact::kAuxiliaryExited, v1::Fact::kExited}));
  EXPECT_EQ(facts[2].auxiliary_exited().name(), "scheduler");
  EXPECT_EQ(facts[2].auxiliary_exited().code(), 2);
  EXPECT_EQ(facts[2].auxiliary_exited().evidence(), "Bind failed");
  EXPECT_EQ(facts[2].at().nanos(), 20'000'000);
}

// Regression: a failed setup was reported once more for each rank: "was lost: nobody saw how it
// ended".
TEST(Facts, RanksThatWereNeverStartedAreNotLost) {
  RunSeen seen = started_run();
  seen.started = false;
  seen.pids = {{5, 4711}};
  seen.start_failed = "running runtime.setup: 'false' ended with status 1";
  seen.stop_requested = true;
  seen.swept = true;
  const auto facts = facts_of(kRun, seen);
  ASSERT_EQ(kinds(facts),
            (std::vector<int>{v1::Fact::kStartFailed, v1::Fact::kExited, v1::Fact::kSwept}));
  EXPECT_EQ(facts[1].exited().rank(), 5U) << "this one was forked before another could not be";
  EXPECT_TRUE(facts[1].exited().lost());
  EXPECT_TRUE(facts[2].swept().logs_follow()) << "the setup's log is still to come";
}

// The same was reported for the setup on the other nodes, which were stopped during theirs.
TEST(Facts, NorAreRanksOfARunThatWasStoppedInItsSetup) {
  RunSeen seen = started_run();
  seen.started = false;
  seen.pids.clear();
  seen.stop_requested = true;
  seen.swept = true;
  EXPECT_EQ(kinds(facts_of(kRun, seen)), (std::vector<int>{v1::Fact::kExited, v1::Fact::kExited,
                                                           v1::Fact::kExited, v1::Fact::kSwept}))
      << "the worker died: nobody knows";
  seen.swept_by_worker = true;
  EXPECT_EQ(kinds(facts_of(kRun, seen)), (std::vector<int>{v1::Fact::kSwept}));
}

TEST(Facts, ExitsOldestFirstThenLostOnesThenSwept) {
  RunSeen seen = started_run();
  seen.first_step = 12;
  seen.first_step_at = at(2);
  seen.clock_ahead = std::chrono::seconds(-75);
  seen.clock_ahead_at = at(2);
  seen.exits[4] = {.rank = 4, .code = 0, .at = at(30)};
  seen.exits[6] = {.rank = 6,
                   .code = -1,
                   .signal = 9,
                   .oom = true,
                   .at = at(20),
                   .evidence = "Killed",
                   .success_seen = true,
                   .step = 40,
                   .total = 100};
  seen.swept = true;
  seen.swept_why = v1::SWEPT_WHY_WORKER_DIED;
  seen.swept_at = at(40);
  const auto facts = facts_of(kRun, seen);
  ASSERT_EQ(kinds(facts),
            (std::vector<int>{v1::Fact::kStarted, v1::Fact::kFirstStep, v1::Fact::kNodeClockSkewed,
                              v1::Fact::kExited, v1::Fact::kExited, v1::Fact::kExited,
                              v1::Fact::kSwept}));
  EXPECT_EQ(facts[1].first_step().step(), 12);
  EXPECT_EQ(facts[2].node_clock_skewed().ahead().seconds(), -75);
  EXPECT_EQ(facts[3].exited().rank(), 6U);
  EXPECT_EQ(facts[3].exited().signal(), 9);
  EXPECT_TRUE(facts[3].exited().oom());
  EXPECT_EQ(facts[3].exited().evidence(), "Killed");
  EXPECT_TRUE(facts[3].exited().success_seen());
  EXPECT_EQ(facts[3].exited().step(), 40);
  EXPECT_EQ(facts[3].exited().total(), 100);
  EXPECT_FALSE(facts[4].exited().has_step() || facts[4].exited().has_total())
      << "nobody has read it";
  EXPECT_EQ(facts[4].exited().rank(), 4U);
  EXPECT_FALSE(facts[4].exited().lost());
  EXPECT_EQ(facts[5].exited().rank(), 5U);
  EXPECT_TRUE(facts[5].exited().lost());
  EXPECT_EQ(facts[5].exited().code(), -1);
  EXPECT_FALSE(facts[5].exited().stop_requested());
  EXPECT_EQ(facts[6].swept().why(), v1::SWEPT_WHY_WORKER_DIED);
}

TEST(Facts, NoExitIsLostBeforeTheSweep) {
  RunSeen seen = started_run();
  seen.worker = WorkerState::Dead;
  EXPECT_EQ(kinds(facts_of(kRun, seen)), (std::vector<int>{v1::Fact::kStarted}));
}

TEST(Facts, LostAfterAStopWasWrittenIsNotACause) {
  RunSeen seen = started_run();
  seen.stop_requested = true;
  seen.swept = true;
  for (const auto& fact : facts_of(kRun, seen)) {
    if (fact.has_exited()) {
      EXPECT_TRUE(fact.exited().stop_requested());
    }
  }
}

TEST(Facts, RefusedRunReportsWhyAndSweptButNoRanks) {
  RunSeen seen;
  seen.launch_sound = true;
  seen.ranks = {0, 1};
  seen.worker = WorkerState::Never;
  seen.refused = {v1::START_FAILURE_PORT, "port 29500 is taken"};
  seen.refused_step = "check";
  seen.refused_at = at(5);
  seen.swept = true;
  seen.swept_why = v1::SWEPT_WHY_NEVER_STARTED;
  const auto facts = facts_of(kRun, seen);
  ASSERT_EQ(kinds(facts), (std::vector<int>{v1::Fact::kStartFailed, v1::Fact::kSwept}));
  EXPECT_EQ(facts[0].start_failed().why(), v1::START_FAILURE_PORT);
  EXPECT_EQ(facts[0].start_failed().text(), "port 29500 is taken");
  EXPECT_EQ(facts[0].start_failed().step(), "check");
  EXPECT_FALSE(facts[1].swept().logs_follow());
}

TEST(Facts, StoppedBeforeItsStartIsNobodysFailure) {
  RunSeen seen;
  seen.worker = WorkerState::Never;
  seen.refused = {v1::START_FAILURE_UNSPECIFIED, "asked to stop before it was started"};
  EXPECT_TRUE(facts_of(kRun, seen).empty());
  seen.swept = true;
  EXPECT_EQ(kinds(facts_of(kRun, seen)), (std::vector<int>{v1::Fact::kSwept}));
}

TEST(Facts, WorkerThatCouldNotExecIsALaunchFailure) {
  RunSeen seen = started_run();
  seen.started = false;
  seen.start_failed = "executing '/x': No such file or directory";
  seen.start_failed_error = ENOENT;
  seen.start_failed_at = at(9);
  const auto facts = facts_of(kRun, seen);
  ASSERT_EQ(kinds(facts), (std::vector<int>{v1::Fact::kStartFailed}));
  EXPECT_EQ(facts[0].start_failed().why(), v1::START_FAILURE_LAUNCH);
  EXPECT_EQ(facts[0].at().nanos(), 9'000'000);
}

TEST(Facts, WantOfProcessesOrRoomIsTheNodesFault) {
  RunSeen seen = started_run();
  seen.started = false;
  seen.start_failed = "forking rank 3: Resource temporarily unavailable";
  for (const auto& [error, why] :
       {std::pair(EAGAIN, v1::START_FAILURE_NODE), std::pair(ENOMEM, v1::START_FAILURE_NODE),
        std::pair(ENOSPC, v1::START_FAILURE_DISK), std::pair(EACCES, v1::START_FAILURE_LAUNCH),
        std::pair(0, v1::START_FAILURE_NODE)}) {
    seen.start_failed_error = error;
    EXPECT_EQ(facts_of(kRun, seen).at(0).start_failed().why(), why) << error;
  }
}

TEST(Facts, TheSameDirectoryGivesTheSameFacts) {
  RunSeen seen = started_run();
  for (const std::uint32_t rank : seen.ranks)
    seen.exits[rank] = {.rank = rank, .code = 1, .at = at(7)};
  seen.swept = true;
  const auto once = facts_of(kRun, seen);
  const auto again = facts_of(kRun, seen);
  ASSERT_EQ(once.size(), again.size());
  for (std::size_t i = 0; i < once.size(); ++i)
    EXPECT_EQ(once[i].SerializeAsString(), again[i].SerializeAsString());
}

TEST(Facts, TimesBeforeTheEpochKeepNanosPositive) {
  RunSeen seen = started_run();
  seen.started_at = WallTime(std::chrono::nanoseconds(-1));
  const auto facts = facts_of(kRun, seen);
  EXPECT_EQ(facts[0].at().seconds(), -1);
  EXPECT_EQ(facts[0].at().nanos(), 999'999'999);
}

}  // namespace
}  // namespace muster::agent
