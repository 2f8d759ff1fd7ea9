// What an agent makes of its controller's messages. link_test has the same over real streams.
#include "agent/core/controller_link.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using Seen = std::map<RunKey, RunSeen>;

struct ControllerLinkTest : testing::Test {
  static v1::Welcome welcome_of(std::uint64_t epoch, const std::string& cluster = "c") {
    v1::Welcome welcome;
    welcome.set_cluster_id(cluster);
    welcome.set_epoch(epoch);
    return welcome;
  }
  // "run a", "stop b"
  static v1::Orders orders_of(std::uint64_t epoch, const std::vector<std::string>& texts) {
    v1::Orders orders;
    orders.set_cluster_id("c");
    orders.set_epoch(epoch);
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
  Result<bool> welcome(std::uint64_t epoch, const std::string& cluster = "c") {
    return link.welcome(welcome_of(epoch, cluster), [this](const Identity& joined) {
      joins.push_back(joined);
      return join_result;
    });
  }
  using Texts = std::vector<std::string>;

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
    EXPECT_FALSE(taken.obey || taken.store) << job;
  }
  EXPECT_EQ(obeyed(), Texts{"none"});
  EXPECT_FALSE(link.stored(Epoch(3), Seen())) << "an older write";
  EXPECT_TRUE(link.stored(Epoch(4), Seen()));
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
  EXPECT_FALSE(taken.obey || taken.store);
  v1::Orders other = orders_of(3, {"run a"});
  other.set_cluster_id("d");
  EXPECT_NE(link.take(other, Seen()).ignored, "");
  EXPECT_EQ(obeyed(), Texts{"none"});
}

TEST_F(ControllerLinkTest, AnEpochThatOnlyTheOrdersNameIsStoredFirst) {
  ASSERT_TRUE(welcome(3));
  const auto taken = link.take(orders_of(5, {"run a"}), Seen());
  EXPECT_TRUE(taken.store);
  EXPECT_FALSE(taken.obey);
  EXPECT_EQ(link.identity().highest_epoch, Epoch(5));
  EXPECT_TRUE(link.stored(Epoch(5), Seen()));
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
  v1::FactAck ack;
  ack.set_index(7);
  EXPECT_TRUE(link.take(ack));
  EXPECT_FALSE(link.take(ack));
  ack.set_index(5);
  EXPECT_FALSE(link.take(ack));
  v1::Hello hello;
  link.fill(hello);
  EXPECT_EQ(hello.acked_index(), 7u);
  EXPECT_EQ(hello.instance(), "i");
}

}  // namespace
}  // namespace muster::agent
