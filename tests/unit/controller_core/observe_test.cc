#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

struct Observed : SmallWorld {
  Observed() {
    node("n0", 1);
    node("n1", 1);
    submit("j1", spec("train", 2, 1));
    started("j1", 1, "n0");
    started("j1", 1, "n1");
  }
  static v1::AttemptReading& reading(HeartbeatHeard& heard) {
    v1::AttemptReading& added = *heard.heartbeat.add_readings();
    added.set_job_id("j1");
    added.set_attempt(1);
    return added;
  }
  const AttemptSeen& seen() { return presence.attempts[{JobId("j1"), AttemptNo(1)}]; }
};

TEST(Observe, AnOldConnectionIsNotHeard) {
  Observed world;
  world.see(Connected{
      .node = NodeName("n0"), .connection = ConnectionId(77), .instance = InstanceId("i1")});
  world.pass(std::chrono::seconds(2));
  world.see(HeartbeatHeard{.node = NodeName("n0"), .connection = ConnectionId(1)});
  world.see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(1)});
  EXPECT_TRUE(is_connected(world.presence, NodeName("n0")));
  EXPECT_EQ(last_word(world.presence, NodeName("n0")), world.now.boot - std::chrono::seconds(2));
}

TEST(Observe, AControllerThatHasJustStartedCallsNobodySilent) {
  Observed world;
  world.presence = Presence{};
  world.presence.listening_since = world.now.boot;
  EXPECT_FALSE(
      is_silent(world.presence, NodeName("n0"), world.now.boot, world.limits.silent_after));
  world.pass(world.limits.silent_after);
  EXPECT_TRUE(is_silent(world.presence, NodeName("n0"), world.now.boot, world.limits.silent_after));
}

TEST(Observe, ReadingsOfTheCurrentAttemptCount) {
  Observed world;
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  v1::AttemptReading& reading = Observed::reading(heard);
  reading.add_ranks()->set_step(12);
  reading.mutable_ranks(0)->set_loss(2.5);
  reading.add_samples()->set_step(13);
  reading.mutable_samples(0)->set_seconds(0.5);
  reading.mutable_step_age();
  world.see(heard);
  EXPECT_EQ(world.seen().best_step, 13);
  EXPECT_EQ(world.seen().ranks.at(RankNo(0)).loss, 2.5);
  EXPECT_EQ(world.seen().step_seconds, 0.5);
  EXPECT_EQ(world.seen().last_step_at, world.now.wall);
}

// An agent measures the age of a step with its own clock only. Regression: for a training that had
// hung for an hour, `why` showed "running on every node".
TEST(Observe, TheLastStepHasAnAge) {
  Observed world;
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  v1::AttemptReading& reading = Observed::reading(heard);
  reading.add_ranks()->set_step(12);
  reading.mutable_ranks(0)->set_total(40);
  world.see(heard);
  EXPECT_EQ(world.seen().last_step_at, WallTime{})
      << "the agent was restarted, and has read no step since";
  const auto why = [&] {
    return explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits);
  };
  EXPECT_EQ(why().back(), "step 12 of 40 is done");
  reading.mutable_step_age()->set_seconds(100);
  world.see(heard);
  EXPECT_EQ(world.seen().last_step_at, world.now.wall - std::chrono::seconds(100));
  EXPECT_EQ(why(), (std::vector<std::string>{"attempt 1 is running on every node",
                                             "step 12 of 40 was 1m40s ago"}));
  const WallTime before = world.seen().last_step_at;
  world.pass(std::chrono::seconds(60));
  reading.mutable_step_age()->set_seconds(159);
  reading.mutable_step_age()->set_nanos(500'000'000);
  world.see(heard);
  EXPECT_EQ(world.seen().last_step_at, before)
      << "half a second is how long a heartbeat takes, no step";
  reading.mutable_step_age()->set_seconds(-5);
  world.see(heard);
  EXPECT_LE(world.seen().last_step_at, world.now.wall);
  reading.mutable_step_age()->set_seconds(INT64_MAX);
  reading.mutable_step_age()->set_nanos(-1);
  world.see(heard);
  EXPECT_LE(world.seen().last_step_at, world.now.wall) << "whatever an agent says";
}

// Regression: the job failed with "5 attempts in a row without a new best step" although its steps
// increased, because an agent had reported "step 999999999999", of 40.
TEST(Observe, AStepBeyondItsTotalIsNone) {
  Observed world;
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  v1::AttemptReading& reading = Observed::reading(heard);
  reading.add_ranks()->set_step(12);
  reading.mutable_ranks(0)->set_total(40);
  world.see(heard);
  reading.mutable_ranks(0)->set_step(999'999'999'999);
  reading.mutable_ranks(0)->set_log_bytes(7);
  reading.add_samples()->set_step(999'999'999'999);
  world.see(heard);
  EXPECT_EQ(world.seen().best_step, 12);
  EXPECT_EQ(world.seen().ranks.at(RankNo(0)).step, 12);
  EXPECT_EQ(world.seen().ranks.at(RankNo(0)).log_bytes, 7U);
}

TEST(Observe, ALossThatIsNoNumberIsNotedOnceAnAttempt) {
  Observed world;
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  v1::AttemptReading& reading = Observed::reading(heard);
  reading.add_ranks()->set_step(14);
  reading.mutable_ranks(0)->set_loss_not_finite(true);
  reading.add_samples()->set_step(12);
  reading.add_samples()->set_step(13);
  reading.mutable_samples(1)->set_loss_not_finite(true);
  const std::size_t rows = world.journal.size();
  world.see(heard);
  world.see(heard);
  ASSERT_EQ(world.journal.size(), rows + 1);
  const auto* noted = std::get_if<AttemptNoted>(&world.journal.back().second.body);
  ASSERT_NE(noted, nullptr);
  EXPECT_EQ(noted->note, Note::LossNotFinite);
  EXPECT_EQ(noted->step, 13);
  EXPECT_TRUE(world.seen().ranks.at(RankNo(0)).loss_not_finite);
  EXPECT_TRUE(world.presence.notes.empty()) << "nothing is kept of what the ledger has";
}

TEST(Observe, ARankWithoutAStepIsNotAtStepZero) {
  Observed world;
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  Observed::reading(heard).add_ranks()->set_log_bytes(7);
  world.see(heard);
  EXPECT_EQ(world.seen().ranks.at(RankNo(0)).step, -1);
  EXPECT_FALSE(world.seen().ranks.at(RankNo(0)).has_loss);
  EXPECT_EQ(world.seen().best_step, -1);
}

TEST(Observe, AFileThatNoLayoutKnowsIsNotedOnceAJob) {
  Observed world;
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  Observed::reading(heard).set_unknown_file("step_20.pt\n" + std::string(5000, 'x'));
  const std::size_t rows = world.journal.size();
  world.see(heard);
  world.see(heard);
  ASSERT_EQ(world.journal.size(), rows + 1);
  const auto* noted = std::get_if<AttemptNoted>(&world.journal.back().second.body);
  ASSERT_NE(noted, nullptr);
  EXPECT_EQ(noted->note, Note::UnknownFiles);
  EXPECT_EQ(noted->text, "step_20.pt?" + std::string(1013, 'x'))
      << "what an agent might say is not kept without end";
}

// Regression: a node's state disk had turned read-only. `why` showed "running on every node", and
// the silent ranks died when their lease ended, which nothing had shown.
TEST(Observe, ADiskThatTakesNoWritesIsReportedWithTheEndOfTheLease) {
  Observed world;
  const auto heartbeat = [&](const std::string& trouble, std::optional<int> lease_left) {
    HeartbeatHeard heard{.node = NodeName("n1"), .connection = ConnectionId(2)};
    heard.heartbeat.set_disk_trouble(trouble);
    v1::AttemptReading& reading = Observed::reading(heard);
    if (lease_left) reading.mutable_lease_left()->set_seconds(*lease_left);
    world.see(heard);
    return explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits);
  };
  const std::string no_writes =
      "node 'n1' cannot write to its state directory ('/state': Read-only file system): ends of "
      "ranks are not seen before it can";
  EXPECT_EQ(heartbeat("'/state': Read-only file system", 90),
            std::vector{no_writes + "; its ranks go on until their lease ends in 1m30s"});
  EXPECT_EQ(heartbeat("'/state': Read-only file system", std::nullopt),
            std::vector{no_writes + "; its ranks go on"})
      << "full: leases are renewed";
  EXPECT_EQ(heartbeat("", std::nullopt),
            std::vector<std::string>{"attempt 1 is running on every node"});
  EXPECT_TRUE(heartbeat("\x1b[31m" + std::string(5000, 'x'), std::numeric_limits<int>::max())
                  .front()
                  .size() < 1000)
      << "whatever an agent says";
  EXPECT_LT(world.seen().leases_end.at(NodeName("n1")),
            world.now.boot + std::chrono::hours(24 * 366));
}

// Regression: only the reason was shown, without the time, the attempt, and where to find more.
TEST(Observe, WhyGivesTheCauseThenTheLineThenWhenAndWhoKnowsMore) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  for (const std::uint32_t attempt : {1U, 2U}) {
    world.started("j1", attempt, "n0");
    v1::Fact fact = world.fact("j1", attempt);
    fact.mutable_exited()->set_code(1);
    fact.mutable_exited()->set_evidence("ValueError: bad config (train.py:214, in load)");
    world.report("n0", std::move(fact));
    world.swept("j1", attempt, "n0");
  }
  ASSERT_EQ(world.job("j1").phase, JobPhase::Failed);
  world.pass(std::chrono::seconds(5));
  EXPECT_EQ(
      explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits),
      (std::vector<std::string>{
          "failed: rank 0 on node 'n0' ended with status 1; the same user error twice in a row",
          "it printed: ValueError: bad config (train.py:214, in load)",
          "attempt 2, 5s ago; `muster logs j1 --attempt 2 --rank 0` has what it printed before"}));
}

TEST(Observe, HowFarASetUpHasComeIsReported) {
  SmallWorld world;
  world.node("n0", 1);
  world.node("n1", 1);
  world.submit("j1", SmallWorld::spec("train", 2, 1));
  // whose nodes have agents that accept it
  world.ledger.jobs.at(JobId("j1")).spec.mutable_runtime()->set_image("img:1");
  const auto tells = [&](const char* node, const std::string& text, bool setting_up) {
    HeartbeatHeard heard{.node = NodeName(node),
                         .connection = ConnectionId(node[1] == '0' ? 1 : 2)};
    v1::AttemptReading& reading = Observed::reading(heard);
    reading.set_setting_up(setting_up);
    reading.set_setup_text(text);
    world.see(heard);
    return explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits);
  };
  tells("n0", "", true);
  const auto both = tells("n1", "runtime.image: 3 of 7 layers\n" + std::string(1000, 'x'), true);
  ASSERT_EQ(both.size(), 2U) << "one of them has nothing to tell";
  EXPECT_EQ(both[0], "attempt 1 is being set up (runtime.image) on 'n0', 'n1', within 30m a node");
  EXPECT_EQ(both[1], "node 'n1': runtime.image: 3 of 7 layers?" + std::string(483, 'x'))
      << "what another agent might say is not kept without end";
  const auto over = tells("n1", "runtime.image: 7 of 7 layers", false);
  ASSERT_EQ(over.size(), 2U);
  EXPECT_EQ(over[0], "attempt 1 is being set up (runtime.image) on 'n0', within 30m a node");
}

TEST(Observe, TheStepOfAStartIsReportedWithItsProgress) {
  SmallWorld world;
  world.node("n0", 1);
  world.node("n1", 1);
  world.submit("j1", SmallWorld::spec("train", 2, 1));
  // whose nodes have agents that accept it
  world.ledger.jobs.at(JobId("j1")).spec.mutable_runtime()->set_image("img:1");
  const auto tells = [&](const char* node, const std::string& step, const std::string& progress,
                         bool setting_up = false) {
    HeartbeatHeard heard{.node = NodeName(node),
                         .connection = ConnectionId(node[1] == '0' ? 1 : 2)};
    v1::AttemptReading& reading = Observed::reading(heard);
    reading.set_start_step(step);
    reading.set_setup_text(progress);
    reading.set_setting_up(setting_up);
    world.see(heard);
    return explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits);
  };
  const std::string not_started = "attempt 1 is being started; not started yet: 'n0', 'n1'";
  EXPECT_EQ(tells("n0", "check", ""),
            (std::vector<std::string>{not_started, "node 'n0': step 'check'"}));
  EXPECT_EQ(tells("n1", "fetch", "3 of 7 files"),
            (std::vector<std::string>{not_started, "node 'n0': step 'check'",
                                      "node 'n1': 3 of 7 files (step 'fetch')"}));
  EXPECT_EQ(tells("n0", "container", "runtime.image: 3 of 7 layers", true),
            (std::vector<std::string>{
                "attempt 1 is being set up (runtime.image) on 'n0', within 30m a node",
                "node 'n0': runtime.image: 3 of 7 layers (step 'container')",
                "attempt 1 is being started; not started yet: 'n1'",
                "node 'n1': 3 of 7 files (step 'fetch')"}));
  tells("n0", "", "");
  const AttemptSeen& seen = world.presence.attempts.at({JobId("j1"), AttemptNo(1)});
  EXPECT_FALSE(seen.starts.contains(NodeName("n0"))) << "it starts nothing any more";
  tells("n1", "fe\x1btch" + std::string(5'000, 'x'), "");
  EXPECT_EQ(seen.starts.at(NodeName("n1")).step, "fe?tch" + std::string(26, 'x'))
      << "what another agent might say is not kept without end";
  world.started("j1", 1, "n1");
  EXPECT_EQ(tells("n0", "spawn", ""),
            (std::vector<std::string>{"attempt 1 is being started; not started yet: 'n0'",
                                      "node 'n0': step 'spawn'"}))
      << "the other has started";
}

TEST(Observe, AStartWithoutASetUpIsCalledNone) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("train", 1, 1));
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  v1::AttemptReading& reading = Observed::reading(heard);
  reading.set_setting_up(true);  // its code is copied
  reading.set_start_step("code");
  world.see(heard);
  EXPECT_EQ(explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits),
            (std::vector<std::string>{"attempt 1 is being started; not started yet: 'n0'",
                                      "node 'n0': step 'code'"}));
}

// Of a job of a thousand nodes, not each is listed.
TEST(Observe, TheStepsOfSomeNodesAreReported) {
  SmallWorld world;
  AttemptSeen seen;
  for (int i = 10; i < 30; ++i) {
    world.node("n" + std::to_string(i), 1);
    seen.starts[NodeName("n" + std::to_string(i))].step = "check";
  }
  world.submit("j1", SmallWorld::spec("train", 20, 1));
  world.presence.attempts[{JobId("j1"), AttemptNo(1)}] = seen;
  EXPECT_EQ(explain(world.ledger, world.presence, world.job("j1"), world.now, world.limits).size(),
            1U + 6U);
}

TEST(Observe, ReadingsOfOthersDoNot) {
  Observed world;
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  Observed::reading(heard).set_attempt(2);
  heard.heartbeat.add_readings()->set_job_id("j9");
  world.see(heard);
  EXPECT_TRUE(world.presence.attempts.empty());
}

// Regression: a machine that had replaced another one under the name 'n0' reported steps and
// shards of the other's attempt, and was believed.
TEST(Observe, AMachineThatReplacedAnotherDoesNotSpeakForIt) {
  Observed world;
  world.pass(std::chrono::hours(24));  // the orphan grace is over: nothing of the part can run
  world.node("n0", 1, "b2", "i2");
  ASSERT_EQ(world.presence.nodes.at(NodeName("n0")).instance, InstanceId("i2"));
  ASSERT_EQ(world.job("j1").current()->number, AttemptNo(1)) << "no second node is there";
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(world.connections)};
  v1::AttemptReading& reading = Observed::reading(heard);
  reading.add_ranks()->set_step(12);
  reading.mutable_ranks(0)->set_loss_not_finite(true);
  reading.set_unknown_file("step_20.pt");
  v1::ShardReading& shard = *reading.add_shards();
  shard.set_step(10);
  shard.set_shard("a");
  shard.set_finished(true);
  shard.set_sealed(true);
  shard.set_expected(1);
  observe(world.presence, world.ledger, heard, world.now);
  EXPECT_TRUE(world.presence.attempts.empty());
  EXPECT_TRUE(world.presence.whole.empty());
  EXPECT_TRUE(world.presence.notes.empty());
}

TEST(Observe, FinishedShardsOfAllNodesMakeACheckpoint) {
  Observed world;
  for (const char* node : {"n0", "n1"}) {
    HeartbeatHeard heard{.node = NodeName(node),
                         .connection = ConnectionId(node[1] == '0' ? 1 : 2)};
    v1::ShardReading& shard = *Observed::reading(heard).add_shards();
    shard.set_step(10);
    shard.set_shard(node);
    shard.set_bytes(5);
    shard.set_finished(true);
    shard.set_expected(2);
    shard.set_sealed(node[1] == '1');
    shard.set_path("/save/iter_0000010");
    world.see(heard);
    EXPECT_EQ(world.job("j1").checkpoints.size(), node[1] == '0' ? 0U : 1U);
  }
  EXPECT_EQ(world.job("j1").checkpoints[0].bytes, 10U);
  EXPECT_EQ(world.job("j1").checkpoints[0].path, "/save/iter_0000010");
}

TEST(Observe, ACheckpointOfUnknownSizeIsNeverWhole) {
  CheckpointSeen seen{
      .shards = {{"a", {.bytes = 1, .finished = true}}}, .expected = 0, .sealed = true};
  EXPECT_FALSE(seen.complete());
  seen.expected = 1;
  EXPECT_TRUE(seen.complete());
  seen.sealed = false;
  EXPECT_FALSE(seen.complete());
}

TEST(Observe, OnlyTheNewestStepsAreKept) {
  Observed world;
  for (std::int64_t step = 1; step <= 50; ++step) {
    HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
    v1::ShardReading& shard = *Observed::reading(heard).add_shards();
    shard.set_step(step);
    shard.set_shard("a");
    world.see(heard);
  }
  EXPECT_EQ(world.seen().checkpoints.size(), 4U);
  EXPECT_EQ(world.seen().checkpoints.begin()->first, 47);
}

// Regression: each of them waited to be recorded as long as the attempt ran.
TEST(Observe, OfCheckpointsThatOneHeartbeatTellsTheNewestAreFiled) {
  Observed world;
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  for (std::int64_t step = 1; step <= 10'000; ++step) {
    v1::ShardReading& shard = *Observed::reading(heard).add_shards();
    shard.set_step(step);
    shard.set_shard("a");
    shard.set_expected(1);
    shard.set_finished(true);
    shard.set_sealed(true);
  }
  observe(world.presence, world.ledger, heard, world.now);
  EXPECT_EQ(world.presence.whole.size(), 4U);
  world.settle();
  ASSERT_EQ(world.job("j1").checkpoints.size(), 4U);
  EXPECT_EQ(world.job("j1").checkpoints[0].step, 9'997);
}

// Regression: after twelve messages of one node with ranks that no job has, the controller had
// grown from 19 to 465 MiB.
TEST(Observe, OfRanksThatAreNotOfTheNodesPartNothingIsKept) {
  Observed world;
  HeartbeatHeard heard{.node = NodeName("n1"), .connection = ConnectionId(2)};
  v1::AttemptReading& reading = Observed::reading(heard);
  for (const std::uint32_t rank : {0U, 1U, 2U, 4'000'000'000U}) {
    reading.add_ranks()->set_rank(rank);
    reading.mutable_ranks(reading.ranks_size() - 1)->set_step(10 + rank);
    reading.add_samples()->set_rank(rank);
    reading.mutable_samples(reading.samples_size() - 1)->set_step(10 + rank);
  }
  world.see(heard);
  ASSERT_EQ(world.seen().ranks.size(), 1U);
  EXPECT_EQ(world.seen().ranks.begin()->first, RankNo(1));
  EXPECT_EQ(world.seen().best_step, 11) << "nor do they count as progress";
}

TEST(Observe, TheNamesOfACheckpointsShardsHaveABound) {
  Observed world;
  const auto tell = [&](const std::string& prefix, std::size_t length, int count) {
    HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
    v1::AttemptReading& reading = Observed::reading(heard);
    for (int i = 0; i < count; ++i) {
      v1::ShardReading& shard = *reading.add_shards();
      shard.set_step(5);
      shard.set_shard(prefix + std::to_string(i) + std::string(length, 'x'));
      shard.set_path("/save/iter_5");
    }
    world.see(heard);
  };
  const auto kept = [&] {
    std::size_t bytes = 0;
    for (const auto& [name, shard] : world.seen().checkpoints.at(5).shards) bytes += name.size();
    return bytes;
  };
  tell("a", 10, 1'000);
  EXPECT_EQ(world.seen().checkpoints.at(5).shards.size(), 1'000U);
  for (int message = 0; message < 12; ++message)
    tell("b" + std::to_string(message) + "-", 100'000, 40);
  EXPECT_LE(kept(), 16U << 20U);
  EXPECT_GT(kept(), 15U << 20U);
  tell("a", 10, 1'001);
  EXPECT_EQ(world.seen().checkpoints.at(5).shards.count("a7" + std::string(10, 'x')), 1U)
      << "what is known is still told of";
  HeartbeatHeard heard{.node = NodeName("n0"), .connection = ConnectionId(1)};
  v1::ShardReading& far = *Observed::reading(heard).add_shards();
  far.set_step(6);
  far.set_shard("one");
  far.set_path("/" + std::string(1 << 20, 'p'));
  world.see(heard);
  EXPECT_EQ(world.seen().checkpoints.at(6).path, "");
}

// Each is kept for ever: in the journal, in the ledger, and in every answer about the job.
TEST(Report, WhatANodeSaysOfItsPartIsBounded) {
  SmallWorld world;
  world.node("n0", 2);
  world.node("n1", 2);
  world.submit("j1", SmallWorld::spec("train", 2, 2));
  const std::string much(3 << 20, 'x');
  v1::Fact started = world.fact("j1", 1);
  for (int i = 0; i < 100'000; ++i) started.mutable_started()->add_pids(1);
  started.mutable_started()->mutable_resolved()->add_env("A=" + much);
  world.report("n0", started);
  v1::Fact exited = world.fact("j1", 1);
  exited.mutable_exited()->set_code(1);
  exited.mutable_exited()->set_evidence(much);
  world.report("n0", exited);
  v1::Fact failed = world.fact("j1", 1);
  failed.mutable_start_failed()->set_text(much);
  world.report("n1", failed);
  v1::Fact auxiliary = world.fact("j1", 1);
  auxiliary.mutable_auxiliary_exited()->set_name("scheduler");
  auxiliary.mutable_auxiliary_exited()->set_code(1);
  auxiliary.mutable_auxiliary_exited()->set_evidence(much);
  world.report("n0", auxiliary);
  v1::Fact swept = world.fact("j1", 1);
  swept.mutable_swept();
  world.report("n0", swept);
  const AttemptRecord& attempt = world.job("j1").attempts.at(0);
  const NodePart& part = attempt.parts.at(0);
  EXPECT_EQ(part.pids.size(), 2U);
  EXPECT_TRUE(part.started);
  EXPECT_EQ(part.resolved.env_size(), 0);
  EXPECT_EQ(part.exits.at(RankNo(0)).evidence.size(), 1'024U);
  EXPECT_EQ(part.auxiliaries.at("scheduler").evidence.size(), 1'024U);
  EXPECT_LE(attempt.parts.at(1).start_failed->text.size(), 8U << 10U);
  std::size_t journal = 0;
  for (const auto& [index, event] : world.journal)
    journal += std::holds_alternative<AttemptBroke>(event.body)
                   ? std::get<AttemptBroke>(event.body).cause.size()
                   : 0;
  EXPECT_LE(journal, 16U << 10U);
}

}  // namespace
}  // namespace muster::core
