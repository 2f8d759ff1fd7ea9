#include "controller/core/verdict.h"

#include <gmock/gmock.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using std::chrono::milliseconds;

// Two nodes, two ranks each, running.
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

TEST(Verdict, OutOfMemoryIsItsOwnClass) {
  Running world;
  v1::RankExited oom = with(0, 9);
  oom.set_oom(true);
  world.fact_of_rank(1, oom);
  world.fact_of_rank(0, with(0, 15), milliseconds(50));
  EXPECT_EQ(world.verdict().cls, FailureClass::Oom);
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
  world.fact_of_rank(0, late, milliseconds(800));
  world.fact_of_rank(3, first, milliseconds(100));
  world.fact_of_rank(1, with(0, 6), milliseconds(900));  // aborts because its peers are gone
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
  world.see(PulseHeard{.node = NodeName("n0"), .connection = ConnectionId(1)});
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
  world.swept("j1", 1, "n1", "orphaned");
  world.swept("j1", 1, "n0", "stopped");
  EXPECT_EQ(world.job("j1").attempt(AttemptNo(1))->verdict->cls, FailureClass::Node);
}

// Two faults of the network look the same; an error of the program itself would have met it where the last attempt was.
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
