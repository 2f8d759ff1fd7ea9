// Which agent has a node's name, and what it is ordered. hub_test has the same over real streams.
#include "controller/core/peers.h"

#include "common/base/version.h"
#include "common/proto/proto_lineage.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

struct PeersTest : testing::Test, SmallWorld {
  PeersTest() {
    ledger.cluster = ClusterId("c");
    ledger.epoch = Epoch(3);
  }
  Peers::View view() {
    return {.ledger = ledger,
            .presence = presence,
            .paused = paused,
            .last = JournalIndex(journal.size())};
  }
  static v1::Hello hello(const std::string& incarnation = "one",
                         const std::string& instance = "i1") {
    v1::Hello made;
    made.set_protocol_min(1);
    made.set_protocol_max(1);
    made.set_node("n1");
    made.set_instance(instance);
    made.set_incarnation(incarnation);
    made.set_boot_id("b1");
    made.mutable_uptime()->set_seconds(60);
    *made.mutable_inventory() = inventory(4, "n1");
    return made;
  }
  Peers::Judgement judge(const v1::Hello& one) {
    return peers.hello(one, ConnectionId(++connections), "10.0.0.1", now, view());
  }
  // As the hub does. "": welcomed.
  std::string connect(const v1::Hello& one) {
    const Peers::Judgement judgement = judge(one);
    if (judgement.refusal) return judgement.refusal->message;
    if (judgement.replaced)
      see(Disconnected{.node = judgement.replaced->stream.node,
                       .connection = judgement.replaced->stream.connection});
    stream = {.node = judgement.input.node, .connection = judgement.then.connection};
    const Decision decision = put(judgement.input);
    if (!decision.refusal) see(judgement.then);
    const Peers::Admission admission = peers.registered(stream, decision.refusal, view());
    if (admission.refusal) return admission.refusal->message;
    EXPECT_TRUE(admission.welcome);
    return "";
  }
  void heard() { see(HeartbeatHeard{.node = stream.node, .connection = stream.connection}); }
  // "run a.1", "stop b.2", "forget c.1"; nothing: no orders are due.
  std::optional<std::vector<std::string>> orders(bool always = false) {
    const auto made = peers.orders(NodeName("n1"), view(), always);
    if (!made) return std::nullopt;
    EXPECT_EQ(made->stream.connection, stream.connection);
    EXPECT_EQ(to_lineage(made->standing.lineage()), ledger.lineage);
    EXPECT_EQ(made->standing.epoch(), ledger.epoch.value);
    EXPECT_EQ(made->standing.cluster_id(), "c");
    std::vector<std::string> texts;
    for (const v1::Order& order : made->standing.orders())
      texts.push_back((order.has_stop() ? "stop " : "forget ") + order.job_id() + "." +
                      std::to_string(order.attempt()));
    for (const Assignment& run : made->runs)
      texts.push_back("run " + run.job.str() + "." + std::to_string(run.attempt.value));
    return texts;
  }
  using Texts = std::vector<std::string>;

  std::string paused;
  Peers peers{std::chrono::seconds(1)};
  Peers::Stream stream;
};

TEST_F(PeersTest, TheWelcomeNamesTheClusterTheLineageAndTheEpoch) {
  ledger.lineage = {.generation = 2, .id = "two"};
  const Peers::Judgement judgement = judge(hello());
  ASSERT_FALSE(judgement.refusal);
  put(judgement.input);
  const auto admission = peers.registered(
      {.node = NodeName("n1"), .connection = judgement.then.connection}, std::nullopt, view());
  ASSERT_TRUE(admission.welcome);
  EXPECT_EQ(admission.welcome->cluster_id(), "c");
  EXPECT_EQ(to_lineage(admission.welcome->lineage()), ledger.lineage);
  EXPECT_EQ(admission.welcome->epoch(), 3u);
  EXPECT_EQ(admission.welcome->heartbeat_interval().seconds(), 1);
  EXPECT_TRUE(peers.is_welcomed(NodeName("n1")));
}

// Regression: each changed Hello is a row for ever. A node's certificate wrote 18 MB of them in a
// second.
TEST_F(PeersTest, ANodeThatAlwaysSaysSomethingElseIsKeptWithinItsShareOfTheDisk) {
  const auto changed = [](std::size_t number) {
    v1::Hello one = hello();
    one.mutable_inventory()->add_findings(std::to_string(number) + std::string(100'000, 'x'));
    return one;
  };
  std::size_t accepted = 0;
  std::string refused;
  while (refused.empty() && accepted < 1'000) {
    refused = connect(changed(accepted));
    if (refused.empty()) ++accepted;
  }
  EXPECT_GT(accepted, 70U);
  EXPECT_LT(accepted, 90U) << "of 100 KB, in 8 MiB";
  EXPECT_TRUE(refused.contains("has changed so often")) << refused;
  EXPECT_EQ(judge(changed(accepted)).refusal->code, ErrorCode::Unreachable) << "it tries again";
  EXPECT_EQ(connect(changed(accepted - 1)), "") << "it has the record of that one";
  now.boot += std::chrono::minutes(2);
  EXPECT_EQ(connect(changed(accepted)), "");
}

// An agent of another release has another range of protocols: the newest that both speak is used.
TEST_F(PeersTest, TheWelcomeChoosesTheNewestCommonProtocol) {
  for (const std::uint32_t newest : {kProtocolMin, kProtocolMax, kProtocolMax + 3}) {
    v1::Hello one = hello();
    one.set_protocol_min(kProtocolMin);
    one.set_protocol_max(newest);
    const Peers::Judgement judgement = judge(one);
    ASSERT_FALSE(judgement.refusal) << judgement.refusal->message;
    const auto admission = peers.registered(
        {.node = NodeName("n1"), .connection = judgement.then.connection}, std::nullopt, view());
    ASSERT_TRUE(admission.welcome);
    EXPECT_EQ(admission.welcome->protocol(), std::min(newest, kProtocolMax));
  }
}

TEST_F(PeersTest, ANewerStreamOfTheSameAgentReplacesTheOlder) {
  ASSERT_EQ(connect(hello()), "");
  const ConnectionId first = stream.connection;
  const Peers::Judgement judgement = judge(hello());
  ASSERT_TRUE(judgement.replaced);
  EXPECT_EQ(judgement.replaced->stream.connection, first);
  EXPECT_EQ(judgement.replaced->why.message,
            "agent stream of node 'n1': replaced by a newer one of the same agent");
  // What the older one still gets decided changes nothing, and its end does not end the newer one.
  const auto late =
      peers.registered({.node = NodeName("n1"), .connection = first}, std::nullopt, view());
  EXPECT_FALSE(late.welcome || late.refusal);
  peers.gone({.node = NodeName("n1"), .connection = first});
  EXPECT_TRUE(peers
                  .registered({.node = NodeName("n1"), .connection = judgement.then.connection},
                              std::nullopt, view())
                  .welcome);
}

// Regression: it replaced the agent's new stream, and named none of what had been started since.
// The controller took that for a state directory that was put back, and broke the attempt.
TEST_F(PeersTest, AHelloThatWasOvertakenIsRefused) {
  v1::Hello newer = hello(), older = hello();
  newer.mutable_uptime()->set_seconds(100);
  older.mutable_uptime()->set_seconds(95);
  ASSERT_EQ(connect(newer), "");
  const Peers::Stream connected = stream;
  const Peers::Judgement judgement = judge(older);
  ASSERT_TRUE(judgement.refusal);
  EXPECT_EQ(judgement.refusal->code, ErrorCode::Unreachable);
  EXPECT_EQ(judgement.refusal->message,
            "connecting node 'n1': this Hello is older than the one by which the agent is "
            "connected");
  EXPECT_FALSE(judgement.replaced);
  EXPECT_TRUE(peers.is_welcomed(connected.node));
  // After a reboot the machine's uptime begins anew.
  older.set_boot_id("b2");
  older.set_incarnation("two");
  pass(std::chrono::seconds(5));
  EXPECT_EQ(connect(older), "");
}

TEST_F(PeersTest, AnotherInstanceDoesNotGetTheName) {
  ASSERT_EQ(connect(hello()), "");
  const Peers::Judgement judgement = judge(hello("one", "i2"));
  ASSERT_TRUE(judgement.refusal);
  EXPECT_EQ(judgement.refusal->code, ErrorCode::Conflict);
  EXPECT_EQ(judgement.refusal->message,
            "connecting node 'n1' (instance 'i2'): the name is taken by instance 'i1' from "
            "10.0.0.1; two agents need two names");
}

// An agent that was killed and restarted waits until its old stream is silent; an agent on a copy
// of the state directory is told so, as soon as the first one is heard again.
TEST_F(PeersTest, AnotherIncarnationWaitsForTheSilenceOfTheFirst) {
  ASSERT_EQ(connect(hello("one")), "");
  heard();
  EXPECT_EQ(judge(hello("two")).refusal->code, ErrorCode::Unreachable);
  pass(std::chrono::milliseconds(500));
  heard();
  const auto copy = judge(hello("two")).refusal;
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->code, ErrorCode::Conflict);
  EXPECT_NE(copy->message.find("uses a copy of this agent's state directory"), std::string::npos);
  pass(std::chrono::seconds(4));
  EXPECT_EQ(connect(hello("two")), "");
}

TEST_F(PeersTest, APausedControllerWelcomesNobodyAndOrdersNothing) {
  ASSERT_EQ(connect(hello()), "");
  submit("a", spec("a", 1, 1));
  paused = "the controller pauses";
  EXPECT_FALSE(orders(true));
  const Peers::Judgement judgement = judge(hello());
  ASSERT_TRUE(judgement.refusal);
  EXPECT_EQ(judgement.refusal->message, "connecting node 'n1': the controller pauses");
  paused = "";
  EXPECT_EQ(orders(), Texts{"run a.1"});
}

// The pause is decided between the judgement and the durable registration.
TEST_F(PeersTest, AStreamThatMeetsThePauseIsRefused) {
  const Peers::Judgement judgement = judge(hello());
  ASSERT_FALSE(judgement.refusal);
  put(judgement.input);
  paused = "the controller pauses";
  const auto admission = peers.registered(
      {.node = NodeName("n1"), .connection = judgement.then.connection}, std::nullopt, view());
  ASSERT_TRUE(admission.refusal);
  EXPECT_EQ(admission.refusal->code, ErrorCode::Unreachable);
}

// A Hello that knows more than the journal pauses the cluster, but not if somebody else has the
// name.
TEST_F(PeersTest, OnlyTheKnownAgentOfAFreeNameShowsThatTheJournalIsBehind) {
  ASSERT_EQ(connect(hello()), "");
  v1::Hello more = hello();
  more.set_cluster_id("c");
  more.set_highest_epoch(4);
  EXPECT_NE(judge(more).behind, "");
  more.set_instance("i2");
  const Peers::Judgement judgement = judge(more);
  EXPECT_EQ(judgement.behind, "");
  EXPECT_TRUE(judgement.refusal);
}

// The lost end of the journal may have contained that it was started, ended and forgotten. Nothing
// has been proposed yet.
TEST_F(PeersTest, WhatWasPlacedBeforeALossIsNotOrderedAgain) {
  ASSERT_EQ(connect(hello()), "");
  submit("a", spec("a", 1, 1));
  ASSERT_EQ(orders(), Texts{"run a.1"});
  peers = Peers(std::chrono::seconds(1));
  accept({.events = {
              JournalEndLost{.lineage = {.generation = 1, .id = "one"}, .attempts_skipped = 3}}});
  const Peers::Judgement judgement = judge(hello());
  stream.connection = judgement.then.connection;
  ASSERT_TRUE(peers.registered(stream, std::nullopt, view()).welcome);
  EXPECT_EQ(orders(true), Texts{"stop a.1"});
  // A node that has it keeps it.
  peers = Peers(std::chrono::seconds(1));
  v1::Hello has = hello();
  has.add_present()->set_job_id("a");
  has.mutable_present(0)->set_attempt(1);
  stream.connection = judge(has).then.connection;
  ASSERT_TRUE(peers.registered(stream, std::nullopt, view()).welcome);
  EXPECT_EQ(orders(true), Texts{});
}

TEST_F(PeersTest, EachPartIsOrderedOnceAndStopsAreRepeated) {
  ASSERT_EQ(connect(hello()), "");
  EXPECT_FALSE(orders()) << "nothing has changed";
  EXPECT_EQ(orders(true), Texts{});
  submit("a", spec("a", 1, 1));
  EXPECT_EQ(orders(), Texts{"run a.1"});
  EXPECT_FALSE(orders());
  submit("b", spec("b", 1, 1));
  EXPECT_EQ(orders(), Texts{"run b.1"}) << "a.1 was sent on this stream";
  put(CancelJob{.job = JobId("a"), .reason = ""});
  EXPECT_EQ(orders(), Texts{"stop a.1"});
  EXPECT_EQ(orders(true), Texts{"stop a.1"});
  // On another stream, what its Hello does not name is ordered again.
  v1::Hello again = hello();
  ASSERT_EQ(connect(again), "");
  EXPECT_EQ(orders(true), (Texts{"stop a.1", "run b.1"}));
  again.add_present()->set_job_id("b");
  again.mutable_present(0)->set_attempt(1);
  ASSERT_EQ(connect(again), "");
  EXPECT_EQ(orders(true), Texts{"stop a.1"});
}

TEST_F(PeersTest, WhatWasStartedIsStoppedWhereItIsNot) {
  ASSERT_EQ(connect(hello()), "");
  submit("a", spec("a", 1, 1));
  EXPECT_EQ(orders(), Texts{"run a.1"});
  started("a", 1, "n1");
  ASSERT_EQ(connect(hello()), "");
  EXPECT_EQ(orders(true), Texts{"stop a.1"});
}

TEST_F(PeersTest, ANodeDeclaredDeadLosesItsStream) {
  ASSERT_EQ(connect(hello()), "");
  pass(std::chrono::hours(1));
  const std::size_t before = journal.size();
  ASSERT_FALSE(put(DeclareNodeDead{.node = NodeName("n1"), .reason = "test"}).refusal);
  std::vector<Row> rows;
  for (std::size_t i = before; i < journal.size(); ++i)
    rows.push_back({.index = journal[i].first, .event = journal[i].second});
  const auto endings = peers.released(rows, ledger);
  ASSERT_EQ(endings.size(), 1u);
  EXPECT_EQ(endings[0].stream.connection, stream.connection);
  EXPECT_FALSE(peers.is_welcomed(NodeName("n1")));
  EXPECT_EQ(connect(hello()), "") << "a new Hello takes it back";
  EXPECT_TRUE(peers.released(rows, ledger).empty()) << "it is not dead any more";
}

TEST_F(PeersTest, WhatNoOrderNamesIsALeftover) {
  ASSERT_EQ(connect(hello()), "");
  submit("a", spec("a", 1, 1));
  (void)orders();
  HeartbeatHeard heartbeat{.node = stream.node, .connection = stream.connection};
  v1::AttemptReading& reading = *heartbeat.heartbeat.add_readings();
  reading.set_job_id("a");
  reading.set_attempt(1);
  EXPECT_FALSE(peers.has_leftovers(heartbeat));
  reading.set_attempt(2);
  EXPECT_TRUE(peers.has_leftovers(heartbeat));
  heartbeat.connection = ConnectionId(77);
  EXPECT_FALSE(peers.has_leftovers(heartbeat)) << "of a stream that was replaced";
}

}  // namespace
}  // namespace muster::core
