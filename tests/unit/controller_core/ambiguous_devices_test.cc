// Two devices of a node with one number. Regression: one device was given out twice. The inventory
// had two cards of one physical number (as the parts of a divided A3 are shown), or the ids [0, 0].
// This aborted the controller, and again at each start, because the journal had the inventory by
// then.
#include <gmock/gmock.h>

#include "common/engine/ranktable/cards.h"
#include "controller/core/placement/node_fit.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::Inventory inventory_of(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& devices,
                           const std::string& type) {
  v1::Inventory inventory;
  inventory.set_address("10.0.0.1");
  for (const auto& [id, physical] : devices) {
    v1::Device& device = *inventory.add_devices();
    device.set_id(id);
    device.set_physical_id(physical);
    device.set_type(type);
  }
  return inventory;
}

NodeRegistered registered(v1::Inventory inventory) {
  return {.node = NodeName("n0"),
          .instance = InstanceId("i1"),
          .boot_id = BootId("b1"),
          .inventory = std::move(inventory),
          .version = "test"};
}
Connected connected() {
  return {.node = NodeName("n0"),
          .connection = ConnectionId(1),
          .instance = InstanceId("i1"),
          .present = {},
          .boot_id = BootId("b1")};
}
void add_node(SmallWorld& world, v1::Inventory inventory) {
  world.put(RegisterNode{.node = NodeName("n0"),
                         .instance = InstanceId("i1"),
                         .boot_id = BootId("b1"),
                         .inventory = std::move(inventory),
                         .version = "test"});
  world.see(connected());
}
v1::JobSpec hccl_spec(const std::string& name, std::uint32_t devices) {
  v1::JobSpec spec = SmallWorld::spec(name, 1, devices);
  spec.set_engine("torch");
  return spec;
}
const std::vector<std::uint32_t>& devices_of(const SmallWorld& world, const std::string& job) {
  return world.job(job).attempts.at(0).parts.at(0).placed.devices;
}

TEST(AmbiguousDevices, PartsOfOneCardAreEachTakenOnce) {
  for (const char* type : {"ascend910", "ascend910b", "ascend910_93"}) {
    SmallWorld world;
    add_node(world, inventory_of({{0, 0}, {1, 0}, {2, 1}, {3, 1}}, type));
    world.submit("j1", hccl_spec("one", 2));
    world.submit("j2", hccl_spec("two", 1));
    world.submit("j3", hccl_spec("three", 1));
    std::vector<std::uint32_t> all;
    for (const char* job : {"j1", "j2", "j3"})
      all.insert(all.end(), devices_of(world, job).begin(), devices_of(world, job).end());
    std::ranges::sort(all);
    EXPECT_THAT(all, ElementsAre(0U, 1U, 2U, 3U)) << type;
  }
}

// Both halves of a 910b server have the position, and one half has it once.
TEST(AmbiguousDevices, ANumberIsChosenAsOftenAsItIsFree) {
  EXPECT_THAT(
      ranktable::choose_cards(ranktable::Chip::A910B, std::vector<std::uint32_t>{0, 0, 8}, 2),
      ElementsAre(0U, 0U))
      << "of one half";
  EXPECT_THAT(
      ranktable::choose_cards(ranktable::Chip::A910B, std::vector<std::uint32_t>{0, 0, 1, 8, 9}, 4),
      ElementsAre(0U, 1U, 8U, 9U));
  EXPECT_THAT(
      ranktable::choose_cards(ranktable::Chip::A910B, std::vector<std::uint32_t>{0, 0, 8}, 4),
      ElementsAre());
}

TEST(AmbiguousDevices, DevicesWithOneNumberAreLeftOutAndReported) {
  SmallWorld world;
  add_node(world, inventory_of({{0, 0}, {0, 1}, {1, 2}}, "cpu"));
  const v1::Inventory& kept = world.ledger.nodes.at(NodeName("n0")).inventory;
  ASSERT_EQ(kept.devices_size(), 1);
  EXPECT_EQ(kept.devices(0).id(), 1U);
  ASSERT_EQ(kept.findings_size(), 1);
  EXPECT_EQ(
      kept.findings(0),
      "2 devices are left out, for they share the number 0: each device has a number of its own");
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  EXPECT_THAT(devices_of(world, "j1"), ElementsAre(1U));
  const Decision two = world.submit("j2", SmallWorld::spec("two", 1, 2));
  ASSERT_TRUE(two.refusal);
  EXPECT_THAT(two.refusal->message, HasSubstr("'n0' has 1 cpu"));
  // The same inventory again is not recorded.
  const std::size_t rows = world.journal.size();
  add_node(world, inventory_of({{0, 0}, {0, 1}, {1, 2}}, "cpu"));
  EXPECT_EQ(world.journal.size(), rows);
}

TEST(AmbiguousDevices, AnInventoryThatIsInTheJournalAlreadyStartsAndPlaces) {
  SmallWorld world;
  apply(world.ledger, JournalIndex(1),
        {.at = world.now.wall,
         .body = registered(inventory_of({{0, 0}, {0, 1}, {1, 2}, {2, 3}}, "cpu"))});
  world.see(connected());
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  world.submit("j2", SmallWorld::spec("two", 1, 1));
  world.submit("j3", SmallWorld::spec("three", 1, 1));
  EXPECT_THAT(devices_of(world, "j1"), ElementsAre(1U));
  EXPECT_THAT(devices_of(world, "j2"), ElementsAre(2U));
  EXPECT_TRUE(world.job("j3").attempts.empty()) << "nobody can say which of the two it would get";
  EXPECT_THAT(ambiguous_ids(world.ledger.nodes.at(NodeName("n0")).inventory), ElementsAre(0U));
}

}  // namespace
}  // namespace muster::core
