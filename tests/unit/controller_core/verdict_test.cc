#include "controller/core/recovery/verdict.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using std::chrono::milliseconds;

// Two nodes with two ranks each, running.
struct Running : SmallWorld {
  Running() {
    node("n0", 2);
    node("n1", 2);
    submit("j1", spec("train", 2, 2));
    started("j1", 1, "n0");
    started("j1", 1, "n1");
  }
  void fact_of_rank(std::uint32_t rank, v1::RankExited exit, Duration offset = {}) {
    v1::Fact what = fact("j1", 1, offset);
    exit.set_rank(rank);
    *what.mutable_exited() = std::move(exit);
    report(rank < 2 ? "n0" : "n1", std::move(what));
  }
  Verdict verdict() {
    swept("j1", 1, "n0");
    swept("j1", 1, "n1");
    return *job("j1").attempt(AttemptNo(1))->verdict;
  }
};

v1::RankExited with(int code, int signal = 0) {
  v1::RankExited exit;
  exit.set_code(signal != 0 ? -1 : code);
  exit.set_signal(signal);
  return exit;
}

TEST(Verdict, SignalBeatsTheStatusesThatItCaused) {
  Running world;
  world.fact_of_rank(0, with(1), milliseconds(-400));
  world.fact_of_rank(2, with(1));
  world.fact_of_rank(3, with(0, 9), milliseconds(100));
  const Verdict verdict = world.verdict();
  EXPECT_EQ(verdict.cls, FailureClass::Signal);
  EXPECT_EQ(verdict.rank, RankNo(3));
}

TEST(Verdict, AStatusLongBeforeOnTheSameClockIsNoEcho) {
  Running world;
  world.fact_of_rank(2, with(3), milliseconds(-5'000));
  world.fact_of_rank(3, with(0, 11));
  EXPECT_EQ(world.verdict().cls, FailureClass::UserError);
}

v1::RankExited saying(v1::RankExited exit, const std::string& evidence, v1::EvidenceKind kind) {
  exit.set_evidence(evidence);
  exit.set_evidence_kind(kind);
  return exit;
}

// Which rank failed first, among ranks that log a cause, ranks that only log that a peer is gone,
// and ranks whose log is unknown.
TEST(Verdict, AConsequenceIsNeverTheFirstWhileAnotherHasACause) {
  struct ReportedExit {
    std::uint32_t rank;
    v1::RankExited exit;
    v1::EvidenceKind kind;
    milliseconds at;
  };
  struct Case {
    const char* name;
    std::vector<ReportedExit> reported;
    FailureClass cls;
    std::uint32_t rank;
  };
  const auto cause = v1::EVIDENCE_KIND_CAUSE, consequence = v1::EVIDENCE_KIND_CONSEQUENCE,
             unknown = v1::EVIDENCE_KIND_UNSPECIFIED;
  using enum FailureClass;
  const std::vector<Case> cases = {
      {"a cause, long after",
       {{0, with(1), consequence, milliseconds(-9'000)}, {1, with(1), cause, milliseconds(0)}},
       UserError,
       1},
      {"a cause on another clock",
       {{0, with(1), consequence, milliseconds(-9'000)}, {2, with(2), cause, milliseconds(0)}},
       UserError,
       2},
      {"of unknown kind",
       {{0, with(1), consequence, milliseconds(-9'000)}, {3, with(2), unknown, milliseconds(0)}},
       UserError,
       3},
      {"an abort that says why",
       {{0, with(1), consequence, milliseconds(-9'000)}, {1, with(0, 6), cause, milliseconds(0)}},
       Signal,
       1},
      {"killed, long after a consequence on the same clock",
       {{0, with(1), consequence, milliseconds(-9'000)}, {1, with(0, 9), unknown, milliseconds(0)}},
       Signal,
       1},
      {"killed, and its line is a consequence",
       {{0, with(1), consequence, milliseconds(-50)},
        {2, with(0, 11), consequence, milliseconds(0)}},
       Signal,
       2},
      {"two causes: the first",
       {{1, with(1), cause, milliseconds(-10)}, {0, with(1), cause, milliseconds(0)}},
       UserError,
       1},
      {"consequences alone: the first",
       {{0, with(1), consequence, milliseconds(0)}, {3, with(1), consequence, milliseconds(-10)}},
       Node,
       3},
      {"aborts alone",
       {{0, with(0, 6), consequence, milliseconds(-10)},
        {1, with(1), consequence, milliseconds(0)}},
       Node,
       0},
      {"nobody tells: as ever",
       {{0, with(1), unknown, milliseconds(-10)}, {1, with(1), unknown, milliseconds(0)}},
       UserError,
       0},
  };
  for (const Case& one : cases) {
    Running world;
    for (const ReportedExit& reported : one.reported)
      world.fact_of_rank(reported.rank, saying(reported.exit, "a line", reported.kind),
                         reported.at);
    const Verdict verdict = world.verdict();
    EXPECT_EQ(verdict.cls, one.cls) << one.name;
    EXPECT_EQ(verdict.rank, RankNo(one.rank)) << one.name;
  }
}

// The same two lines twice: neither may end the job.
TEST(Verdict, ConsequencesAloneEndNoJobByComingTwice) {
  Running world;
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    v1::Fact what = world.fact("j1", attempt);
    *what.mutable_exited() =
        saying(with(1), "Connection reset by peer", v1::EVIDENCE_KIND_CONSEQUENCE);
    world.report("n0", std::move(what));
    world.swept("j1", attempt, "n0");
    world.swept("j1", attempt, "n1");
  }
  EXPECT_EQ(world.job("j1").attempts[0].verdict->signature,
            world.job("j1").attempts[1].verdict->signature);
  EXPECT_TRUE(world.job("j1").attempts[1].charged);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
}

// There is no other rank whose fault could have caused it.
TEST(Verdict, OfOneRankAloneAConsequenceIsItsOwnError) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    v1::Fact what = world.fact("j1", attempt);
    *what.mutable_exited() =
        saying(with(1), "ConnectionResetError: [Errno 104] Connection reset by peer",
               v1::EVIDENCE_KIND_CONSEQUENCE);
    world.report("n0", std::move(what));
    world.swept("j1", attempt, "n0");
  }
  EXPECT_EQ(world.job("j1").phase, JobPhase::Failed);
  EXPECT_EQ(world.job("j1").verdict->cls, FailureClass::UserError);
}

// Regression: a full disk twice counted as "the same user error twice in a row", and ended the job.
TEST(Verdict, AFullDiskIsNoErrorOfTheProgram) {
  for (const char* line : {"OSError: [Errno 28] No space left on device: '/out/ckpt/iter_100'",
                           "OSError: [Errno 122] Disk quota exceeded"}) {
    SmallWorld world;
    world.node("n0", 1);
    world.submit("j1", SmallWorld::spec("train", 1, 1));
    for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
      v1::Fact what = world.fact("j1", attempt);
      *what.mutable_exited() = saying(with(1), line, v1::EVIDENCE_KIND_CAUSE);
      world.report("n0", std::move(what));
      world.swept("j1", attempt, "n0");
    }
    const Verdict& verdict = *world.job("j1").attempts[1].verdict;
    EXPECT_EQ(verdict.cls, FailureClass::Node);
    EXPECT_EQ(verdict.reason,
              "rank 0 on node 'n0' ended with status 1: what it writes to is full, or gone");
    EXPECT_EQ(verdict.evidence, line);
    EXPECT_TRUE(world.job("j1").attempts[1].charged);
    EXPECT_EQ(world.job("j1").phase, JobPhase::Launching) << "there may be room by now";
  }
}

// The meaning of a newer agent's evidence kind is not known here.
TEST(Verdict, AKindOfANewerAgentIsUnknown) {
  Running world;
  world.fact_of_rank(0, saying(with(1), "x", static_cast<v1::EvidenceKind>(99)));
  EXPECT_EQ(world.job("j1").current()->parts.front().exits.at(RankNo(0)).evidence_kind,
            EvidenceKind::Unknown);
}

v1::RankExited stopped(v1::RankExited exit) {
  exit.set_stop_requested(true);
  return exit;
}

// Regression, in one of 23 kills of rank 0: rank 1 logged "Connection reset by peer", and its end
// was noticed first. The verdict named rank 1, and rank 0 counted as stopped.
TEST(Verdict, AKillBeforeMustersOwnIsTheCauseOfConsequences) {
  const auto cause = v1::EVIDENCE_KIND_CAUSE, consequence = v1::EVIDENCE_KIND_CONSEQUENCE;
  v1::RankExited killed = stopped(with(0, 9));
  killed.set_killed_unasked(true);
  {
    Running world;
    world.fact_of_rank(1, saying(with(1), "Connection reset by peer", consequence));
    world.fact_of_rank(0, killed, milliseconds(360));
    world.fact_of_rank(2, stopped(with(0, 15)), milliseconds(400));
    const Verdict verdict = world.verdict();
    EXPECT_EQ(verdict.cls, FailureClass::Signal);
    EXPECT_EQ(verdict.rank, RankNo(0));
    EXPECT_EQ(verdict.reason,
              "rank 0 on node 'n0' was killed by signal 9 (SIGKILL) while it was being stopped, "
              "and not by muster");
  }
  {
    Running world;
    world.fact_of_rank(1, saying(with(1), "ValueError: no such file", cause));
    world.fact_of_rank(0, killed, milliseconds(360));
    EXPECT_EQ(world.verdict().rank, RankNo(1)) << "who tells a cause needs no other";
  }
  {
    Running world;
    world.fact_of_rank(1, saying(with(1), "Connection reset by peer", consequence));
    world.fact_of_rank(0, stopped(with(0, 9)), milliseconds(10'000));
    EXPECT_EQ(world.verdict().rank, RankNo(1)) << "muster's own kill is no cause";
  }
}

// Regression: n1's clock was 5 s behind. Its rank, killed after n0's had died, was named, because
// by its own clock it had died long before.
struct Skewed : Running {
  void ended(std::uint32_t rank, v1::RankExited exit, milliseconds before_now) {
    v1::Fact what = fact("j1", 1, -before_now - (rank < 2 ? milliseconds(0) : milliseconds(5'000)));
    what.mutable_age()->set_seconds(before_now.count() / 1000);
    what.mutable_age()->set_nanos(static_cast<std::int32_t>(before_now.count() % 1000 * 1'000'000));
    exit.set_rank(rank);
    *what.mutable_exited() = std::move(exit);
    report(rank < 2 ? "n0" : "n1", std::move(what));
  }
};

TEST(Verdict, NodesWhoseClocksDifferAreComparedByAges) {
  Skewed world;
  world.ended(3, with(0, 9), milliseconds(1'000));
  world.ended(0, with(0, 9), milliseconds(2'000));  // first, and reported last
  EXPECT_EQ(world.job("j1").current()->fault_time, world.now.wall - milliseconds(1'000))
      << "of the first word";
  const Verdict verdict = world.verdict();
  EXPECT_EQ(verdict.rank, RankNo(0));
  EXPECT_EQ(verdict.reason, "rank 0 on node 'n0' was killed by signal 9 (SIGKILL)");
}

TEST(Verdict, WithinTheDelayACauseGoesBeforeAConsequenceElseBothAreNamed) {
  {
    Skewed world;
    world.ended(0, saying(with(0, 9), "Connection reset by peer", v1::EVIDENCE_KIND_CONSEQUENCE),
                milliseconds(1'100));
    world.ended(3, with(0, 11), milliseconds(1'000));
    EXPECT_EQ(world.verdict().rank, RankNo(3));
  }
  {
    Skewed world;
    world.ended(0, with(3), milliseconds(1'100));
    world.ended(3, with(4), milliseconds(1'000));
    const Verdict verdict = world.verdict();
    EXPECT_EQ(verdict.rank, RankNo(0));
    EXPECT_EQ(verdict.reason,
              "rank 0 on node 'n0' ended with status 3; rank 3 on node 'n1' ended with status 4 "
              "within 250ms: which was first cannot be determined");
  }
  {  // On one node, its own clock decides, however close they are.
    Skewed world;
    world.ended(1, with(3), milliseconds(1'001));
    world.ended(0, with(4), milliseconds(1'000));
    EXPECT_EQ(world.verdict().reason, "rank 1 on node 'n0' ended with status 3");
  }
}

// It decides whether the job is tried again: a port may be free the next time, but a missing script
// will still be missing.
TEST(Verdict, OfNodesThatCouldNotStartTheFirstByAgesIsNamed) {
  SmallWorld world;
  world.node("n0", 1);
  world.node("n1", 1);
  world.submit("j1", SmallWorld::spec("train", 2, 1));
  const auto failed = [&](const char* node, v1::StartFailure why, int seconds_ago,
                          int clock_behind) {
    v1::Fact what = world.fact("j1", 1, -std::chrono::seconds(seconds_ago + clock_behind));
    what.mutable_age()->set_seconds(seconds_ago);
    what.mutable_start_failed()->set_why(why);
    world.report(node, std::move(what));
  };
  failed("n1", v1::START_FAILURE_LAUNCH, 1, 5);
  failed("n0", v1::START_FAILURE_NODE, 2, 0);
  world.swept("j1", 1, "n0", v1::SWEPT_WHY_NEVER_STARTED);
  world.swept("j1", 1, "n1", v1::SWEPT_WHY_NEVER_STARTED);
  EXPECT_EQ(world.job("j1").attempts.front().verdict->node, NodeName("n0"));
}

// Whatever an agent reports: a year is the maximum, and no age is negative.
TEST(Verdict, AgesAreBounded) {
  for (const std::int64_t seconds : {std::int64_t{-5}, std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()}) {
    Running world;
    v1::Fact what = world.fact("j1", 1);
    what.mutable_age()->set_seconds(seconds);
    what.mutable_age()->set_nanos(-7);
    *what.mutable_exited() = with(1);
    world.report("n0", std::move(what));
    const RankExited& exit = world.job("j1").current()->parts.front().exits.at(RankNo(0));
    EXPECT_LE(exit.controller_time, world.now.wall);
    EXPECT_GE(exit.controller_time, world.now.wall - std::chrono::hours(24 * 366));
  }
}

// Regression: its worker had ended with everything, because it could not record anything any more.
TEST(Verdict, ANodeWhoseDiskRefusedWritesIsNamedAndNotItsWorker) {
  v1::RankExited lost = with(-1);
  lost.set_lost(true);
  {
    Running world;  // n1 was ordered to stop because of rank 0
    world.fact_of_rank(0, with(3));
    for (const std::uint32_t rank : {2, 3}) world.fact_of_rank(rank, stopped(lost));
    world.swept("j1", 1, "n1", v1::SWEPT_WHY_DISK_REFUSED_WRITES);
    world.swept("j1", 1, "n0");
    EXPECT_EQ(world.job("j1").attempt(AttemptNo(1))->verdict->rank, RankNo(0));
  }
  Running world;
  for (const std::uint32_t rank : {2, 3}) world.fact_of_rank(rank, lost);
  world.swept("j1", 1, "n1", v1::SWEPT_WHY_DISK_REFUSED_WRITES);
  world.swept("j1", 1, "n0");
  const Verdict& verdict = *world.job("j1").attempt(AttemptNo(1))->verdict;
  EXPECT_EQ(verdict.cls, FailureClass::Node);
  EXPECT_EQ(verdict.reason,
            "node 'n1' could not record how its ranks ended: the disk of its state directory takes "
            "no writes");
}

v1::AuxiliaryExited auxiliary(const std::string& name, int code, int signal = 0) {
  v1::AuxiliaryExited exit;
  exit.set_name(name);
  exit.set_code(signal != 0 ? -1 : code);
  exit.set_signal(signal);
  return exit;
}

TEST(Verdict, OnlyABadEndOfASoundNameIsNews) {
  Running world;
  const auto say = [&](v1::AuxiliaryExited exit) {
    v1::Fact what = world.fact("j1", 1);
    *what.mutable_auxiliary_exited() = std::move(exit);
    return world.report("n0", std::move(what)).events.size();
  };
  EXPECT_EQ(say(auxiliary("scheduler", 0)), 0U);
  EXPECT_EQ(say(auxiliary("", 1)), 0U);
  EXPECT_EQ(say(auxiliary(std::string(kAuxiliaryNameMax + 1, 'x'), 1)), 0U);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Running);
  EXPECT_EQ(say(auxiliary("scheduler", 1)), 2U);
  EXPECT_EQ(say(auxiliary("scheduler", 1)), 0U);
  for (std::size_t more = 1; more < kAuxiliariesMax; ++more)
    EXPECT_EQ(say(auxiliary(fmt::format("c{}", more), 1)), 1U);
  EXPECT_EQ(say(auxiliary("one too many", 1)), 0U);
}

TEST(Verdict, AAuxiliaryIsNamed) {
  Running world;
  v1::Fact what = world.fact("j1", 1);
  *what.mutable_auxiliary_exited() = auxiliary("scheduler", 0, 11);
  world.report("n1", std::move(what));
  world.fact_of_rank(0, with(1), milliseconds(-200));
  const Verdict verdict = world.verdict();
  EXPECT_EQ(verdict.cls, FailureClass::Signal);
  EXPECT_EQ(verdict.node, NodeName("n1"));
  EXPECT_FALSE(verdict.rank);
  EXPECT_EQ(verdict.reason, "the scheduler on node 'n1' was killed by signal 11 (SIGSEGV)");
}

TEST(Verdict, OutOfMemoryIsItsOwnClass) {
  Running world;
  v1::RankExited oom = with(0, 9);
  oom.set_oom(true);
  world.fact_of_rank(1, oom);
  world.fact_of_rank(0, with(0, 15), milliseconds(50));
  EXPECT_EQ(world.verdict().cls, FailureClass::Oom);
}

// Regression: "CUDA out of memory" was a user error like any other; only a kill by the kernel
// counted as out of memory.
TEST(Verdict, WhatTheProgramSaysItRanOutOfIsOutOfMemoryToo) {
  for (const auto& [line, signal, expected] :
       {std::tuple{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB "
                   "(train.py:3, in f)",
                   0, "ended with status 1, out of device memory"},
        {"EI0011: x", 0, "ended with status 1, out of device memory"},
        {"terminate called after throwing an instance of 'std::bad_alloc'", 6,
         "was killed by signal 6 (SIGABRT), out of memory of the host"},
        {"MemoryError", 0, "ended with status 1, out of memory of the host"}}) {
    Running world;
    v1::RankExited exit = signal != 0 ? with(0, signal) : with(1);
    exit.set_evidence(line);
    world.fact_of_rank(2, exit);
    const Verdict verdict = world.verdict();
    EXPECT_EQ(verdict.cls, FailureClass::Oom) << line;
    EXPECT_THAT(verdict.reason, testing::EndsWith(expected));
  }
  Running world;
  v1::RankExited killed = with(0, 9);
  killed.set_evidence("MemoryError");
  world.fact_of_rank(2, killed);
  EXPECT_EQ(world.verdict().cls, FailureClass::Signal)
      << "somebody killed it, whatever it had said before";
}

// As before, when it was a user error: the program needs as much memory again.
TEST(Verdict, TheSameWantOfMemoryTwiceIsTheEnd) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  for (const std::uint32_t attempt : {1U, 2U}) {
    ASSERT_EQ(world.job("j1").phase, JobPhase::Launching) << attempt;
    world.started("j1", attempt, "n0");
    v1::Fact fact = world.fact("j1", attempt);
    *fact.mutable_exited() = with(1);
    fact.mutable_exited()->set_evidence(
        fmt::format("RuntimeError: NPU out of memory. Tried to allocate {}.00 GiB", attempt));
    world.report("n0", std::move(fact));
    world.swept("j1", attempt, "n0");
  }
  EXPECT_EQ(world.job("j1").phase, JobPhase::Failed);
  EXPECT_THAT(world.job("j1").verdict->reason,
              testing::EndsWith("; the same want of memory twice in a row"));
}

TEST(Verdict, OurOwnKillsAreNoCauses) {
  Running world;
  v1::RankExited stopped = with(0, 15);
  stopped.set_stop_requested(true);
  world.fact_of_rank(0, stopped, milliseconds(-900));
  world.fact_of_rank(2, with(7));
  const Verdict verdict = world.verdict();
  EXPECT_EQ(verdict.cls, FailureClass::UserError);
  EXPECT_EQ(verdict.rank, RankNo(2));
}

TEST(Verdict, TheFirstOfPlainStatusesWinsAndCarriesItsLine) {
  Running world;
  v1::RankExited late = with(1), first = with(1);
  late.set_evidence("RuntimeError: connection reset");
  first.set_evidence("KeyError: 'tokens'");
  world.fact_of_rank(0, late, -milliseconds(200));
  world.fact_of_rank(3, first, -milliseconds(900));
  world.fact_of_rank(1, with(0, 6), -milliseconds(100));  // aborts because its peers are gone
  const Verdict verdict = world.verdict();
  EXPECT_EQ(verdict.rank, RankNo(3));
  EXPECT_EQ(verdict.evidence, "KeyError: 'tokens'");
}

TEST(Verdict, ANodeThatWentSilentBeatsTheErrorsOfItsPeers) {
  Running world;
  world.see(Disconnected{.node = NodeName("n1"), .connection = ConnectionId(2)});
  world.fact_of_rank(0, with(1));
  world.fact_of_rank(1, with(1));
  world.pass(milliseconds(3'300));
  world.see(HeartbeatHeard{.node = NodeName("n0"), .connection = ConnectionId(1)});
  world.swept("j1", 1, "n0");
  const Verdict verdict = *world.job("j1").attempt(AttemptNo(1))->verdict;
  EXPECT_EQ(verdict.cls, FailureClass::Node);
  EXPECT_EQ(verdict.node, NodeName("n1"));
}

TEST(Verdict, StoppedByAStrangerIsTheWorkersAffair) {
  Running world;
  v1::RankExited stopped = with(0, 15);
  stopped.set_stop_requested(true);
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) world.fact_of_rank(rank, stopped);
  EXPECT_EQ(world.verdict().cls, FailureClass::Worker);
}

TEST(Verdict, AnOrphanedNodeIsTheCause) {
  Running world;
  v1::RankExited stopped = with(0, 9);
  stopped.set_stop_requested(true);
  for (const std::uint32_t rank : {2U, 3U}) world.fact_of_rank(rank, stopped);
  world.swept("j1", 1, "n1", v1::SWEPT_WHY_ORPHANED);
  world.swept("j1", 1, "n0", v1::SWEPT_WHY_STOPPED);
  EXPECT_EQ(world.job("j1").attempt(AttemptNo(1))->verdict->cls, FailureClass::Node);
}

// Two faults of the network have the same signature. An error of the program itself would have
// occurred where the last attempt failed.
TEST(Verdict, TheSameUserErrorEndsAJobOnlyWithoutProgressBetween) {
  for (const bool further : {false, true}) {
    Running world;
    for (const std::uint32_t attempt : {1U, 2U}) {
      v1::Fact step = world.fact("j1", attempt);
      step.mutable_first_step()->set_step(further ? 100 * attempt : 100);
      world.report("n0", step);
      world.exited("j1", attempt, "n0", 0, 1);
      world.swept("j1", attempt, "n0");
      world.swept("j1", attempt, "n1");
    }
    EXPECT_EQ(world.job("j1").phase, further ? JobPhase::Launching : JobPhase::Failed) << further;
  }
}

TEST(Verdict, StatusZeroOnRequestIsNoSuccess) {
  Running world;
  v1::RankExited stopped = with(0);
  stopped.set_stop_requested(true);
  world.fact_of_rank(0, stopped);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Draining);
}

}  // namespace
}  // namespace muster::core
