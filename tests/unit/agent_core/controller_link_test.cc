// What an agent makes of its controller's messages. link_test has the same over real streams.
#include "agent/core/controller_link.h"

#include <gtest/gtest.h>

#include "common/proto/proto_lineage.h"

namespace muster::agent {
namespace {

using Seen = std::map<RunKey, RunSeen>;

struct ControllerLinkTest : testing::Test {
  static v1::Welcome welcome_of(std::uint64_t epoch, const std::string& cluster,
                                const Lineage& lineage) {
    v1::Welcome welcome;
    welcome.set_cluster_id(cluster);
    welcome.set_epoch(epoch);
    *welcome.mutable_lineage() = to_proto(lineage);
    return welcome;
  }
  // "run a", "stop b"
  static v1::Orders orders_of(std::uint64_t epoch, const std::vector<std::string>& texts,
                              const Lineage& lineage = {}) {
    v1::Orders orders;
    orders.set_cluster_id("c");
    orders.set_epoch(epoch);
    *orders.mutable_lineage() = to_proto(lineage);
    for (const std::string& text : texts) {
      v1::Order& order = *orders.add_orders();
      order.set_job_id(text.substr(text.find(' ') + 1));
      order.set_attempt(1);
      if (text.starts_with("run")) order.mutable_run();
      if (text.starts_with("stop")) order.mutable_stop();
    }
    return orders;
  }
  std::vector<std::string> obeyed() const {
    std::vector<std::string> texts;
    if (link.orders() == nullptr) return {"none"};
    for (const v1::Order& order : link.orders()->orders())
      texts.push_back((order.has_run() ? "run " : "stop ") + order.job_id());
    return texts;
  }
  Result<bool> welcome(std::uint64_t epoch, const std::string& cluster = "c",
                       const Lineage& lineage = {}) {
    return link.welcome(welcome_of(epoch, cluster, lineage), [this](const Identity& joined) {
      joins.push_back(joined);
      return join_result;
    });
  }
  Result<bool> welcome(std::uint64_t epoch, const Lineage& lineage) {
    return welcome(epoch, "c", lineage);
  }
  // The code and the text with which the agent refuses this controller. Its identity stays.
  std::pair<ErrorCode, std::string> refusal(std::uint64_t epoch, const Lineage& lineage) {
    const Identity before = link.identity();
    const auto taken = welcome(epoch, lineage);
    EXPECT_EQ(link.identity(), before);
    if (taken) return {ErrorCode::Internal, "accepted"};
    return {taken.error().code, taken.error().message};
  }
  // What was on disk when the agent had seen no more than this.
  static Identity on_disk(std::uint64_t epoch, const Lineage& lineage = {}) {
    return {.instance = InstanceId("i"),
            .cluster = ClusterId("c"),
            .lineage = lineage,
            .highest_epoch = Epoch(epoch)};
  }
  bool ack(std::uint64_t index) {
    v1::FactAck ack;
    ack.set_index(index);
    return link.take(ack);
  }
  v1::Hello hello() const {
    v1::Hello hello;
    link.fill(hello);
    return hello;
  }
  using Texts = std::vector<std::string>;
  const Lineage first{.generation = 1, .id = "a"};
  const Lineage second{.generation = 2, .id = "b"};
  const Lineage other_second{.generation = 2, .id = "x"};

  ControllerLink link{Identity{.instance = InstanceId("i")}};
  std::vector<Identity> joins;
  Result<void> join_result;
};

TEST_F(ControllerLinkTest, ItJoinsAClusterOnceAndDurably) {
  join_result = fail(ErrorCode::Io, "writing: no");
  EXPECT_EQ(welcome(3).error().message, "joining cluster 'c': writing: no");
  EXPECT_TRUE(link.identity().cluster.empty());
  join_result = {};
  EXPECT_FALSE(*welcome(3)) << "it is stored already";
  ASSERT_EQ(joins.size(), 2u);
  EXPECT_EQ(joins[1].cluster, ClusterId("c"));
  EXPECT_EQ(joins[1].highest_epoch, Epoch(3));
  const auto other = welcome(3, "d");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::NotAllowed);
  const auto older = welcome(2);
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, ErrorCode::Conflict);
  EXPECT_EQ(joins.size(), 2u);
}

TEST_F(ControllerLinkTest, ARefusalIsFinalOnlyBeforeTheFirstWelcome) {
  EXPECT_FALSE(link.is_final(true)) << "it belongs to no cluster yet";
  ControllerLink of_another(
      Identity{.instance = InstanceId("i"), .cluster = ClusterId("d"), .highest_epoch = Epoch(1)});
  EXPECT_TRUE(of_another.is_final(true));
  EXPECT_FALSE(of_another.is_final(false));
  ASSERT_TRUE(welcome(3));
  EXPECT_FALSE(link.is_final(true));
}

// Regression: after a restart of the controller, several launches arrived while the new epoch was
// being synced, one in each message. The agent kept the last message alone: three of four jobs did
// not start.
TEST_F(ControllerLinkTest, OrdersWaitForTheirEpochAndNoneIsLost) {
  ASSERT_TRUE(welcome(3));
  ASSERT_TRUE(*welcome(4)) << "to be stored";
  for (const char* job : {"run a", "run b", "run c"}) {
    const auto taken = link.take(orders_of(4, {"stop x", job}), Seen());
    EXPECT_TRUE(taken.accepted) << job;
    EXPECT_FALSE(taken.obey || taken.store) << job;
  }
  EXPECT_EQ(obeyed(), Texts{"none"});
  EXPECT_FALSE(link.stored(on_disk(3), Seen())) << "an older write";
  EXPECT_TRUE(link.stored(on_disk(4), Seen()));
  EXPECT_EQ(obeyed(), (Texts{"stop x", "run c", "run b", "run a"}));
}

// A run stays ordered until it is seen, stopped or forgotten. A standing order replaces.
TEST_F(ControllerLinkTest, OrdersOfOneConnectionAreMerged) {
  ASSERT_TRUE(welcome(3));
  EXPECT_TRUE(link.take(orders_of(3, {"run a"}), Seen()).obey);
  EXPECT_TRUE(link.take(orders_of(3, {"stop x", "run b"}), Seen()).obey);
  EXPECT_EQ(obeyed(), (Texts{"stop x", "run b", "run a"}));
  const Seen seen{{RunKey{JobId("a"), AttemptNo(1)}, RunSeen()}};
  EXPECT_TRUE(link.take(orders_of(3, {"stop b"}), seen).obey);
  EXPECT_EQ(obeyed(), Texts{"stop b"});
  ASSERT_TRUE(welcome(3));
  EXPECT_EQ(obeyed(), Texts{"none"}) << "the controller sends again what still applies";
}

TEST_F(ControllerLinkTest, OrdersOfAnOlderEpochOrAnotherClusterAreIgnored) {
  ASSERT_TRUE(welcome(3));
  auto taken = link.take(orders_of(2, {"run a"}), Seen());
  EXPECT_EQ(taken.ignored, "ignoring orders of epoch 2: a controller of epoch 3 has been seen");
  taken = link.take(orders_of(2, {"run a"}), Seen());
  EXPECT_EQ(taken.ignored, "") << "the same reason is returned once";
  EXPECT_FALSE(taken.accepted || taken.obey || taken.store);
  v1::Orders other = orders_of(3, {"run a"});
  other.set_cluster_id("d");
  EXPECT_NE(link.take(other, Seen()).ignored, "");
  EXPECT_EQ(obeyed(), Texts{"none"});
}

TEST_F(ControllerLinkTest, AnEpochThatOnlyTheOrdersNameIsStoredFirst) {
  ASSERT_TRUE(welcome(3));
  const auto taken = link.take(orders_of(5, {"run a"}), Seen());
  EXPECT_TRUE(taken.accepted && taken.store);
  EXPECT_FALSE(taken.obey);
  EXPECT_EQ(link.identity().highest_epoch, Epoch(5));
  EXPECT_TRUE(link.stored(on_disk(5), Seen()));
  EXPECT_EQ(obeyed(), Texts{"run a"});
}

TEST_F(ControllerLinkTest, AnOrderOfAnUnknownKindIsReturnedOnceAConnection) {
  ASSERT_TRUE(welcome(3));
  const v1::Orders unknown = orders_of(3, {"dance a"});
  (void)link.take(unknown, Seen());
  EXPECT_EQ(link.take_unsupported().size(), 1u);
  (void)link.take(unknown, Seen());
  EXPECT_TRUE(link.take_unsupported().empty());
  ASSERT_TRUE(welcome(3));
  (void)link.take(unknown, Seen());
  EXPECT_EQ(link.take_unsupported().size(), 1u);
}

TEST_F(ControllerLinkTest, AnAcknowledgementCountsFromTheSendingOfItsHeartbeat) {
  ASSERT_TRUE(welcome(3));
  const BootTime start{std::chrono::hours(1)};
  const auto ack = [](std::uint64_t number, std::uint64_t epoch) {
    v1::HeartbeatAck made;
    made.set_number(number);
    made.set_epoch(epoch);
    return made;
  };
  const std::uint64_t first = link.next_heartbeat(start, 10, 1);
  const std::uint64_t second = link.next_heartbeat(start + std::chrono::seconds(1), 20, 2);
  EXPECT_NE(first, second);
  EXPECT_FALSE(link.take(ack(first, 2))) << "of a lower epoch";
  EXPECT_EQ(link.take(ack(first, 3)), start);
  EXPECT_EQ(link.mark_acked(), 10u);
  EXPECT_EQ(link.probe_acked(), 1u);
  EXPECT_FALSE(link.take(ack(first, 3))) << "known";
  EXPECT_FALSE(link.take(ack(second + 1, 3))) << "never sent";
  EXPECT_EQ(link.take(ack(second, 3)), start + std::chrono::seconds(1));
  const std::uint64_t third = link.next_heartbeat(start, 30, 3);
  ASSERT_TRUE(welcome(3));
  EXPECT_EQ(link.mark_acked(), 0u) << "another connection begins anew";
  EXPECT_FALSE(link.take(ack(third, 3)));
}

TEST_F(ControllerLinkTest, AnAcknowledgedIndexOnlyRises) {
  EXPECT_TRUE(ack(7));
  EXPECT_FALSE(ack(7));
  EXPECT_FALSE(ack(5));
  EXPECT_EQ(hello().acked_index(), 7u);
  EXPECT_EQ(hello().instance(), "i");
}

TEST_F(ControllerLinkTest, ItJoinsWithTheLineageDurably) {
  EXPECT_FALSE(*welcome(3, second)) << "it is stored already";
  ASSERT_EQ(joins.size(), 1u);
  EXPECT_EQ(joins[0], on_disk(3, second));
  EXPECT_TRUE(link.take(orders_of(3, {"run a"}, second), Seen()).obey);
}

TEST_F(ControllerLinkTest, AnOlderLineageIsRefusedWhateverItsEpoch) {
  ASSERT_TRUE(welcome(3, second));
  EXPECT_EQ(refusal(99, first),
            std::pair(ErrorCode::Conflict,
                      std::string("the controller is of an older journal (lineage generation 1, "
                                  "this agent has seen generation 2): it is an old controller, or "
                                  "one with an old copy of its journal; stop it")));
  EXPECT_EQ(refusal(99, {}).first, ErrorCode::Conflict);
  EXPECT_EQ(welcome(99, "d", first).error().code, ErrorCode::NotAllowed)
      << "the cluster is compared first";
}

TEST_F(ControllerLinkTest, AnotherLineageOfTheSameGenerationIsRefused) {
  ASSERT_TRUE(welcome(3, second));
  EXPECT_EQ(refusal(99, other_second),
            std::pair(ErrorCode::Conflict,
                      std::string("the controller is of another journal (lineage 'x' of generation "
                                  "2, this agent has seen 'b'): two controllers went on from "
                                  "copies of one journal; stop the wrong one")));
}

TEST_F(ControllerLinkTest, EpochsCompareWithinALineage) {
  ASSERT_TRUE(welcome(3, second));
  EXPECT_EQ(refusal(2, second).first, ErrorCode::Conflict);
  EXPECT_FALSE(*welcome(3, second));
  EXPECT_TRUE(*welcome(4, second)) << "to be stored";
  EXPECT_EQ(link.identity(), on_disk(4, second));
}

TEST_F(ControllerLinkTest, ANewerLineageIsTakenWithALowerEpoch) {
  ASSERT_TRUE(welcome(9, first));
  EXPECT_TRUE(ack(70));
  EXPECT_TRUE(*welcome(2, second)) << "to be stored";
  EXPECT_EQ(joins.size(), 1u) << "it joins once";
  EXPECT_EQ(link.identity(), on_disk(2, second)) << "the acknowledged index begins anew";
  EXPECT_TRUE(ack(5));
  EXPECT_EQ(to_lineage(hello().lineage()), second);
  EXPECT_EQ(hello().highest_epoch(), 2u);
  EXPECT_EQ(hello().acked_index(), 5u);
  EXPECT_EQ(refusal(9, first).first, ErrorCode::Conflict);
  EXPECT_EQ(refusal(1, second).first, ErrorCode::Conflict);
}

TEST_F(ControllerLinkTest, AHigherEpochInANewerLineageIsTakenToo) {
  ASSERT_TRUE(welcome(3));
  EXPECT_TRUE(ack(70));
  EXPECT_TRUE(*welcome(4, first));
  EXPECT_EQ(link.identity(), on_disk(4, first));
}

TEST_F(ControllerLinkTest, OrdersWaitUntilTheNewLineageIsDurable) {
  ASSERT_TRUE(welcome(9, first));
  ASSERT_TRUE(*welcome(2, second));
  EXPECT_FALSE(link.take(orders_of(2, {"run a"}, second), Seen()).obey);
  EXPECT_FALSE(link.stored(on_disk(9, first), Seen())) << "an older write with a higher epoch";
  EXPECT_FALSE(link.take(orders_of(2, {"run b"}, second), Seen()).obey);
  EXPECT_EQ(obeyed(), Texts{"none"});
  EXPECT_TRUE(link.stored(on_disk(2, second), Seen()));
  EXPECT_EQ(obeyed(), (Texts{"run b", "run a"}));
  EXPECT_FALSE(link.stored(on_disk(2, second), Seen())) << "nothing waits";
}

TEST_F(ControllerLinkTest, OrdersWaitForTheLastOfSeveralWrites) {
  ASSERT_TRUE(welcome(9));
  ASSERT_TRUE(*welcome(2, first));
  ASSERT_TRUE(*welcome(1, second));
  ASSERT_TRUE(*welcome(3, second));
  EXPECT_FALSE(link.take(orders_of(3, {"run a"}, second), Seen()).obey);
  EXPECT_FALSE(link.stored(on_disk(2, first), Seen()));
  EXPECT_FALSE(link.stored(on_disk(1, second), Seen()));
  EXPECT_EQ(obeyed(), Texts{"none"});
  EXPECT_TRUE(link.stored(on_disk(3, second), Seen()));
  EXPECT_EQ(obeyed(), Texts{"run a"});
}

TEST_F(ControllerLinkTest, OrdersOfAnotherLineageAreIgnored) {
  ASSERT_TRUE(welcome(9, first));
  ASSERT_TRUE(welcome(2, second));
  ASSERT_FALSE(link.stored(on_disk(2, second), Seen()));
  auto taken = link.take(orders_of(9, {"run a"}, first), Seen());
  EXPECT_EQ(taken.ignored,
            "ignoring orders of lineage generation 1: this agent has seen generation 2");
  EXPECT_FALSE(taken.accepted || taken.obey || taken.store);
  taken = link.take(orders_of(9, {"run a"}, first), Seen());
  EXPECT_EQ(taken.ignored, "") << "the same reason is returned once";
  taken = link.take(orders_of(9, {"run a"}), Seen());
  EXPECT_EQ(taken.ignored,
            "ignoring orders of lineage generation 0: this agent has seen generation 2");
  taken = link.take(orders_of(9, {"run a"}, other_second), Seen());
  EXPECT_EQ(taken.ignored, "ignoring orders of another lineage of generation 2");
  taken = link.take(orders_of(9, {"run a"}, {.generation = 3, .id = "c"}), Seen());
  EXPECT_EQ(taken.ignored,
            "ignoring orders of lineage generation 3: this agent has seen generation 2")
      << "a new one comes only with a Welcome";
  EXPECT_FALSE(taken.accepted || taken.obey || taken.store);
  EXPECT_EQ(obeyed(), Texts{"none"});
  EXPECT_EQ(link.identity(), on_disk(2, second));
  EXPECT_TRUE(link.take(orders_of(2, {"run b"}, second), Seen()).obey);
  EXPECT_EQ(obeyed(), Texts{"run b"});
}

TEST_F(ControllerLinkTest, AMalformedLineageIsRefused) {
  const auto malformed = [this](const Lineage& lineage) {
    return refusal(3, lineage).first == ErrorCode::InvalidArgument;
  };
  for (const bool joined : {false, true}) {
    EXPECT_TRUE(malformed({.generation = 0, .id = "a"})) << joined;
    EXPECT_TRUE(malformed({.generation = 1, .id = ""})) << joined;
    EXPECT_TRUE(malformed({.generation = 1, .id = std::string(65, 'a')})) << joined;
    if (!joined) {
      ASSERT_TRUE(welcome(3));
    }
  }
  EXPECT_EQ(refusal(3, {.generation = 1, .id = ""}).second,
            "the controller has a malformed lineage (generation 1, an id of 0 bytes): it is no "
            "controller of muster; check its address");
  EXPECT_TRUE(welcome(3, {.generation = 1, .id = std::string(64, 'a')}));
}

// The state directory gives the next incarnation its identity.
TEST_F(ControllerLinkTest, TheNextIncarnationKnowsTheLineage) {
  link = ControllerLink(on_disk(5, second));
  EXPECT_EQ(to_lineage(hello().lineage()), second);
  EXPECT_EQ(hello().highest_epoch(), 5u);
  EXPECT_EQ(refusal(9, first).first, ErrorCode::Conflict);
  EXPECT_FALSE(*welcome(5, second)) << "it is on disk";
  EXPECT_TRUE(link.take(orders_of(5, {"run a"}, second), Seen()).obey);
}

}  // namespace
}  // namespace muster::agent
