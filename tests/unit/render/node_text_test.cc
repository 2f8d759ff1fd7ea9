#include "client/render/node_text.h"

#include <gtest/gtest.h>

#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

constexpr WallTime kDrainedNow = WallTime(std::chrono::seconds(1'800'000'000));

v1::Node ready() {
  v1::Node node;
  node.set_name("n0");
  node.set_connected(true);
  return node;
}

TEST(NodeText, StatesAndDrains) {
  v1::Node node = ready();
  EXPECT_EQ(node_state_text(node), "ready");
  EXPECT_EQ(node_state_tint(node), Tint::Good);
  node.mutable_drain();
  EXPECT_EQ(node_state_text(node), "draining");
  EXPECT_EQ(node_state_tint(node), Tint::Warn);
  node.mutable_drain()->set_drained(true);
  EXPECT_EQ(node_state_text(node), "drained");
  node.set_connected(false);
  EXPECT_EQ(node_state_text(node), "away, drained");
  node.set_silent(true);
  EXPECT_EQ(node_state_text(node), "silent, drained");
  node.set_dead(true);
  EXPECT_EQ(node_state_text(node), "dead, drained");
  EXPECT_EQ(node_state_tint(node), Tint::Bad);
}

TEST(NodeText, ADiskThatTakesNoWrites) {
  v1::Node node = ready();
  node.set_disk_trouble("'/var': Read-only file system");
  EXPECT_EQ(node_state_text(node), "disk");
}

TEST(NodeText, WhoDrainsItAndUntilWhen) {
  v1::Drain drain;
  *drain.mutable_since() = to_proto(kDrainedNow - std::chrono::seconds(12));
  drain.set_actor("ann");
  EXPECT_EQ(drain_text(drain, kDrainedNow), "by ann since 2027-01-15T07:59:48.000Z (12s ago)");
  drain.set_why("new\x1b[2J disk");
  EXPECT_EQ(drain_text(drain, kDrainedNow),
            "by ann since 2027-01-15T07:59:48.000Z (12s ago): new?[2J disk");
  EXPECT_EQ(drain_deadline_text(drain, kDrainedNow), "");
  *drain.mutable_deadline() = to_proto(kDrainedNow + std::chrono::minutes(2));
  EXPECT_EQ(drain_deadline_text(drain, kDrainedNow),
            "in 2m00s, at 2027-01-15T08:02:00.000Z: what still runs there is stopped then, and "
            "goes on elsewhere");
  EXPECT_EQ(drain_deadline_text(drain, kDrainedNow + std::chrono::minutes(3)),
            "over since 2027-01-15T08:02:00.000Z; what is left there is being stopped");
  drain.set_drained(true);
  EXPECT_EQ(drain_deadline_text(drain, kDrainedNow + std::chrono::minutes(3)), "");
}

TEST(NodeText, TheStorageOfItsOutputs) {
  v1::Node node = ready();
  EXPECT_EQ(outputs_text(node), "-");
  node.mutable_outputs()->set_root("/srv/out");
  EXPECT_EQ(outputs_text(node), "?");
  node.mutable_outputs()->set_storage("3f9a1c02");
  node.mutable_outputs()->set_nodes(4);
  EXPECT_EQ(outputs_text(node), "3f9a1c02 (4)");
  node.mutable_outputs()->set_trouble("read-only");
  EXPECT_EQ(outputs_text(node), "error");
  node.set_connected(false);
  EXPECT_EQ(outputs_text(node), "-") << "what it has reported may be old";
}

TEST(NodeText, AnOperatorsLabelsGoFirst) {
  v1::Node node = ready();
  EXPECT_EQ(labels_text(node), "-");
  (*node.mutable_inventory()->mutable_labels())["rack"] = "r1";
  (*node.mutable_inventory()->mutable_labels())["zone"] = "a";
  (*node.mutable_labels())["rack"] = "r2";
  EXPECT_EQ(labels_text(node), "rack=r2,zone=a");
}

}  // namespace
}  // namespace muster::render
