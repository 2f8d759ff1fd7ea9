#include <gtest/gtest.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

void finish_one(SmallWorld& world, const std::string& id) {
  world.submit(id, SmallWorld::spec("trivial", 1, 1), id);
  world.started(id, 1, "n0");
  world.exited(id, 1, "n0", 0, 0);
  world.swept(id, 1, "n0");
  world.logs(id, 1, "n0");
}

TEST(Propose, FinishedJobsAreInNoListThatIsWalked) {
  SmallWorld world;
  world.node("n0", 1);
  for (int count = 0; count < 300; ++count) finish_one(world, fmt::format("j{:05}", count));
  EXPECT_TRUE(world.ledger.indexes.live.empty());
  EXPECT_TRUE(world.ledger.indexes.lingering.empty());
  EXPECT_TRUE(world.ledger.indexes.queue.empty());
  EXPECT_TRUE(world.ledger.indexes.device_holders.empty());
  EXPECT_TRUE(world.ledger.indexes.ports_reserved.empty());
  EXPECT_TRUE(world.ledger.indexes.node_parts.at(NodeName("n0")).open.empty());
  EXPECT_EQ(desired(world.ledger, NodeName("n0")).size(), kForgetListMax);
  EXPECT_EQ(world.ledger.indexes.archivable.size(), 300U);
}

TEST(Propose, WakesForTheArchiveAndLeavesNothingBehind) {
  SmallWorld world;
  world.node("n0", 1);
  finish_one(world, "j1");
  const Proposal proposal = propose(world.ledger, world.presence, world.now, world.limits);
  EXPECT_TRUE(proposal.inputs.empty());
  EXPECT_EQ(proposal.wake_at, world.now.boot + world.limits.archive_after);
  world.pass(world.limits.archive_after);
  world.settle();
  EXPECT_TRUE(world.ledger.jobs.empty());
  EXPECT_TRUE(world.ledger.indexes.node_parts.empty());
  EXPECT_TRUE(world.submit("j2", SmallWorld::spec("trivial", 1, 1), "j1").repeated);
  world.pass(world.limits.tombstone_keep);
  world.settle();
  EXPECT_TRUE(world.ledger.tombstones.empty());
  EXPECT_TRUE(world.ledger.indexes.request_ids.empty());
}

TEST(Propose, ARunningJobWakesNobodyBeforeItsGraceCouldEnd) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  const BootTime start_deadline = world.now.boot + world.limits.start_timeout;
  EXPECT_EQ(propose(world.ledger, world.presence, world.now, world.limits).wake_at, start_deadline);
  world.started("j1", 1, "n0");
  EXPECT_EQ(propose(world.ledger, world.presence, world.now, world.limits).wake_at,
            world.now.boot + std::chrono::minutes(33) + world.limits.grace_margin);
}

TEST(Propose, AnIdleClusterHasNoWakeUp) {
  SmallWorld world;
  world.node("n0", 1);
  EXPECT_FALSE(propose(world.ledger, world.presence, world.now, world.limits).wake_at);
}

TEST(Propose, ACaughtUpAttemptSaysSoOnce) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  const auto step = [&](std::uint32_t attempt, std::int64_t number) {
    HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
    v1::AttemptReading& reading = *heard.heartbeat.add_readings();
    reading.set_job_id("j1");
    reading.set_attempt(attempt);
    reading.add_ranks()->set_step(number);
    world.see(heard);
  };
  step(1, 10);
  EXPECT_FALSE(world.job("j1").attempts[0].caught_up_at);
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  step(2, 9);
  EXPECT_FALSE(world.job("j1").attempts[1].caught_up_at);
  step(2, 10);
  EXPECT_TRUE(world.job("j1").attempts[1].caught_up_at);
  const std::size_t events = world.journal.size();
  step(2, 11);
  EXPECT_EQ(world.journal.size(), events);
}

// Regression: 1,500 jobs that need future machines were in the queue before a job that had room. A
// bound on the number of checked jobs made it wait for ever.
TEST(Propose, ManyThatCouldNeverBePlacedHoldNobodyUp) {
  SmallWorld world;
  for (int count = 0; count < 1'500; ++count) {
    const std::string id = fmt::format("wide{:05}", count);
    world.submit(id, SmallWorld::spec(id, 2, 1 + count % 8), id);
  }
  const auto jobs = world.ledger.indexes.queue.size();
  ASSERT_EQ(jobs, 1'500U);
  world.submit("small", SmallWorld::spec("small", 1, 1), "small");
  world.submit("next", SmallWorld::spec("next", 1, 1), "next");
  ASSERT_EQ(world.job("small").phase, JobPhase::Queued);
  world.node("n0", 1);
  EXPECT_EQ(world.job("small").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("next").phase, JobPhase::Queued);
  const auto why =
      explain(world.ledger, world.presence, world.job("next"), world.now, world.limits);
  ASSERT_EQ(why.size(), 1U);
  EXPECT_TRUE(why.front().starts_with("waits: ")) << why.front();

  // The machine that they waited for: those that fit it are placed in their own order, before the
  // jobs after them.
  world.node("n1", 1);
  EXPECT_EQ(world.job("wide00000").phase, JobPhase::Queued);
  world.started("small", 1, "n0");
  world.exited("small", 1, "n0", 0, 0);
  world.swept("small", 1, "n0");
  EXPECT_EQ(world.job("wide00000").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("wide00008").phase, JobPhase::Queued);
  EXPECT_EQ(world.job("next").phase, JobPhase::Queued);
}

TEST(Propose, TheLinesOfTheQueueHoldWhatTheQueueHolds) {
  SmallWorld world;
  world.node("n0", 1);
  for (const char* id : {"j1", "j2", "j3"}) world.submit(id, SmallWorld::spec(id, 1, 1), id);
  const auto in_lines = [&] {
    std::map<std::int64_t, JobId> all;
    for (const auto& [resources, line] : world.ledger.indexes.queue_lines)
      all.insert(line.begin(), line.end());
    return all;
  };
  EXPECT_EQ(in_lines(), world.ledger.indexes.queue);
  EXPECT_EQ(world.ledger.indexes.queue.size(), 2U);
  // A job that comes back is before those that have never run, and is placed again at once.
  world.exited("j1", 1, "n0", 0, -1, 9);
  world.swept("j1", 1, "n0");
  EXPECT_EQ(world.job("j1").attempts.size(), 2U);
  EXPECT_EQ(in_lines(), world.ledger.indexes.queue);
  world.put(CancelJob{.job = JobId("j2")});
  EXPECT_EQ(in_lines(), world.ledger.indexes.queue);
  EXPECT_EQ(world.ledger.indexes.queue.size(), 1U);
}

// Each costs memory: when there are more than the limit, the oldest are dropped early, and no
// others.
TEST(Propose, TombstonesAreBoundedByTheirNumber) {
  SmallWorld world;
  world.limits.archive_after = Duration::zero();
  world.limits.tombstones_max = 100;
  world.node("n0", 1);
  const auto run_one = [&](int number) {
    const std::string id = fmt::format("j{:04}", number);
    world.submit(id, SmallWorld::spec(id, 1, 1), "r" + id);
    world.started(id, 1, "n0");
    world.exited(id, 1, "n0", 0, 0);
    world.swept(id, 1, "n0");
    world.logs(id, 1, "n0");
    world.pass(std::chrono::seconds(1));
    world.see(
        HeartbeatHeard{.node = NodeName("n0"), .connection = ConnectionId(world.connections)});
  };
  for (int number = 0; number < 100; ++number) run_one(number);
  EXPECT_EQ(world.ledger.tombstones.size(), 100U);
  EXPECT_TRUE(world.ledger.tombstones.contains(JobId("j0000")));
  run_one(100);
  EXPECT_EQ(world.ledger.tombstones.size(), 100U);
  EXPECT_FALSE(world.ledger.tombstones.contains(JobId("j0000")));
  EXPECT_TRUE(world.ledger.tombstones.contains(JobId("j0001")));
  EXPECT_FALSE(world.ledger.indexes.request_ids.contains(RequestId("rj0000")));
  // Also many at once, after an upgrade to a version that keeps fewer.
  world.limits.tombstones_max = 3;
  world.settle();
  EXPECT_EQ(world.ledger.tombstones.size(), 3U);
  EXPECT_EQ(world.ledger.indexes.tombstone_ages.size(), 3U);
  EXPECT_TRUE(world.ledger.tombstones.contains(JobId("j0100")));
}

// --- how much placing one batch may do -----------------------------------------------------------

std::vector<std::string> placed_in(SmallWorld& world, PlacingTurn& turn) {
  std::vector<std::string> jobs;
  for (const Input& input :
       propose(world.ledger, world.presence, world.now, world.limits, turn).inputs) {
    if (const auto* placement = std::get_if<ProposePlacement>(&input)) {
      jobs.push_back(placement->job.str());
      world.accept(decide(world.ledger, world.presence, input, world.now, world.limits));
    }
  }
  return jobs;
}
using Jobs = std::vector<std::string>;

// Nothing is settled, because the test decides what a turn does.
struct Queue : SmallWorld {
  void join(std::uint32_t devices) {
    accept(decide(ledger, presence,
                  RegisterNode{.node = NodeName("n0"),
                               .instance = InstanceId("i1"),
                               .boot_id = BootId("b1"),
                               .inventory = inventory(devices, "n0")},
                  now, limits));
    observe(presence, ledger,
            Connected{.node = NodeName("n0"),
                      .connection = ConnectionId(1),
                      .instance = InstanceId("i1"),
                      .boot_id = BootId("b1")},
            now);
  }
  void wait_in_line(const std::string& id, std::uint32_t devices) {
    accept(decide(ledger, presence,
                  SubmitJob{.job = JobId(id), .spec = spec(id, 1, devices), .spec_hash = "h"}, now,
                  limits));
  }
};

TEST(Propose, ATurnPlacesSoManyAndTheNextGoesOnBehindThem) {
  Queue world;
  world.join(9);
  for (const char* id : {"j1", "j2", "j3", "j4", "j5"}) world.wait_in_line(id, 1);
  PlacingTurn turn{.placements = 2};
  EXPECT_EQ(placed_in(world, turn), (Jobs{"j1", "j2"}));
  EXPECT_EQ(placed_in(world, turn), Jobs{}) << "in a second round of the same batch";
  ASSERT_TRUE(turn.cursor);
  turn = {.placements = 2, .cursor = turn.cursor};
  EXPECT_EQ(placed_in(world, turn), (Jobs{"j3", "j4"}));
  turn = {.placements = 2, .cursor = turn.cursor};
  EXPECT_EQ(placed_in(world, turn), (Jobs{"j5"}));
  EXPECT_FALSE(turn.cursor) << "there is no more";
}

// Each of a thousand jobs that no node could ever take costs a check of every node. Regression:
// without a bound and a kept cursor, the job after them was never checked, or it delayed everybody.
TEST(Propose, ChecksAreBoundedAndTheOneBehindIsReached) {
  Queue world;  // without a node yet, so that no impossible job is refused
  for (std::uint32_t i = 0; i < 20; ++i) world.wait_in_line(fmt::format("wide{:02}", i), 100 + i);
  world.wait_in_line("fits", 2);
  world.join(4);
  PlacingTurn turn{.checks = 8};
  int turns = 1;
  Jobs placed = placed_in(world, turn);
  for (; placed.empty() && turn.cursor; ++turns) {
    turn = {.checks = 8, .cursor = turn.cursor};
    placed = placed_in(world, turn);
  }
  EXPECT_EQ(placed, Jobs{"fits"});
  EXPECT_GT(turns, 1) << "the twenty before it were more than one turn may look at";
  turn = {.cursor = turn.cursor};
  EXPECT_EQ(placed_in(world, turn), Jobs{});
  EXPECT_FALSE(turn.cursor);
}

TEST(Propose, WhoComesBackToTheFrontIsFirst) {
  Queue world;
  world.join(3);
  world.wait_in_line("j0", 1);
  PlacingTurn turn;
  ASSERT_EQ(placed_in(world, turn), Jobs{"j0"});
  for (const char* id : {"j1", "j2", "j3"}) world.wait_in_line(id, 1);
  turn = {.placements = 1};
  ASSERT_EQ(placed_in(world, turn), Jobs{"j1"});
  ASSERT_TRUE(turn.cursor);
  // j0's rank dies, and the job is back before j2 is placed.
  v1::Fact started = world.fact("j0", 1), died = started, swept = started;
  started.mutable_started();
  died.mutable_exited()->set_signal(9);
  swept.mutable_swept()->set_why(v1::SWEPT_WHY_ENDED);
  for (const v1::Fact& fact : {started, died, swept})
    world.accept(
        decide(world.ledger, world.presence,
               ReportFact{.node = NodeName("n0"), .instance = InstanceId("i1"), .fact = fact},
               world.now, world.limits));
  world.accept(decide(world.ledger, world.presence,
                      ProposeEnd{.job = JobId("j0"), .attempt = AttemptNo(1)}, world.now,
                      world.limits));
  ASSERT_EQ(world.job("j0").phase, JobPhase::Queued);
  turn = {.placements = 1, .cursor = turn.cursor};
  EXPECT_EQ(placed_in(world, turn), Jobs{"j0"});
  turn = {.cursor = turn.cursor};
  EXPECT_EQ(placed_in(world, turn), Jobs{"j2"}) << "one device is left";
}

// What arrived during the scan of the queue may help jobs that the scan has passed. So the scan
// begins anew when it is at the end.
TEST(Propose, ThoseThatWerePassedAreConsideredAgainWhenSomethingHasChanged) {
  for (const bool changed : {true, false}) {
    Queue world;
    world.wait_in_line("wide", 4);
    for (const char* id : {"j1", "j2"}) world.wait_in_line(id, 1);
    world.join(3);
    PlacingTurn turn{.placements = 1};
    ASSERT_EQ(placed_in(world, turn), Jobs{"j1"});
    world.join(8);
    ASSERT_TRUE(turn.cursor);
    turn = {.cursor = turn.cursor};
    turn.cursor->again = changed;
    EXPECT_EQ(placed_in(world, turn), Jobs{"j2"});
    EXPECT_EQ(turn.cursor.has_value(), changed);
    if (!changed) continue;
    turn = {.cursor = turn.cursor};
    EXPECT_EQ(placed_in(world, turn), Jobs{"wide"});
    EXPECT_FALSE(turn.cursor) << "and once only";
  }
}

// The turn before checked a job that only avoids a node for a while: the end of its pause is not
// forgotten.
TEST(Propose, WhatThoseBeforeTheCursorWaitForIsKept) {
  Queue world;
  world.join(2);
  world.wait_in_line("pauses", 1);
  PlacingTurn turn;
  ASSERT_EQ(placed_in(world, turn), Jobs{"pauses"});
  v1::Fact failed = world.fact("pauses", 1), swept = failed;
  failed.mutable_start_failed()->set_why(v1::START_FAILURE_DISK);
  swept.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
  for (const v1::Fact& fact : {failed, swept})
    world.accept(
        decide(world.ledger, world.presence,
               ReportFact{.node = NodeName("n0"), .instance = InstanceId("i1"), .fact = fact},
               world.now, world.limits));
  world.accept(decide(world.ledger, world.presence,
                      ProposeEnd{.job = JobId("pauses"), .attempt = AttemptNo(1)}, world.now,
                      world.limits));
  world.wait_in_line("j1", 1);
  turn = {.placements = 1};
  ASSERT_EQ(placed_in(world, turn), Jobs{"j1"});
  ASSERT_TRUE(turn.cursor);
  turn = {.cursor = turn.cursor};
  const Proposal last = propose(world.ledger, world.presence, world.now, world.limits, turn);
  EXPECT_FALSE(turn.cursor);
  ASSERT_TRUE(last.wake_at);
  EXPECT_LE(*last.wake_at, world.now.boot + world.limits.start_pause);
}

}  // namespace
}  // namespace muster::core
