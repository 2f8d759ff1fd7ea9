// Which cards and which nodes a job gets where HCCL has rules: groups of a 910 server, addresses
// for a rank table, super-pods.
#include <gmock/gmock.h>

#include "controller/core/placement/card_choice.h"
#include "controller/core/placement/placed_table.h"
#include "controller/core/placement/placing.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::JobSpec hccl_spec(const std::string& name, std::uint32_t nodes, std::uint32_t devices,
                      const std::string& engine = "torch") {
  v1::JobSpec spec = SmallWorld::spec(name, nodes, devices);
  spec.set_engine(engine);
  return spec;
}

void add_cards(SmallWorld& world, const std::string& name, v1::Inventory inventory) {
  world.put(RegisterNode{.node = NodeName(name),
                         .instance = InstanceId("i1"),
                         .boot_id = BootId("b1"),
                         .inventory = std::move(inventory)});
  world.see(Connected{.node = NodeName(name),
                      .connection = ConnectionId(++world.connections),
                      .instance = InstanceId("i1"),
                      .boot_id = BootId("b1")});
}

PlaceResult try_place(const SmallWorld& world, const v1::JobSpec& spec) {
  JobRecord job;
  job.id = JobId("probe");
  job.spec = spec;
  return place(world.ledger, world.presence, job, world.now, world.limits);
}

TEST(CardPlacement, TwoAndFourLieInOneGroup) {
  SmallWorld world;
  add_cards(world, "n0", SmallWorld::inventory(8, "10.0.0.1", "ascend910"));
  world.submit("j1", hccl_spec("one", 1, 1));
  EXPECT_THAT(try_place(world, hccl_spec("a", 1, 2)).nodes.at(0).devices, ElementsAre(1U, 2U))
      << "out of the group that is broken";
  EXPECT_THAT(try_place(world, hccl_spec("a", 1, 4)).nodes.at(0).devices,
              ElementsAre(4U, 5U, 6U, 7U));
  world.submit("j2", hccl_spec("two", 1, 2));
  world.submit("j3", hccl_spec("three", 1, 2));
  const PlaceResult result = try_place(world, hccl_spec("a", 1, 4));
  EXPECT_FALSE(result.never);
  EXPECT_EQ(result.why,
            "need 1 node with 4 devices of one group (0-3 or 4-7), 0 fit: 'n0' has 1+2 of 8 "
            "devices free ('one' attempt 1)");
}

// Three cards are free, and no pair of them is in one group. By number alone they would be enough,
// and the job would end at its start.
TEST(CardPlacement, ANodeWhoseFreeCardsAreInBothGroupsIsPassedBy) {
  SmallWorld world;
  for (const char* name : {"n0", "n1"})
    add_cards(world, name, SmallWorld::inventory(8, name, "ascend910"));
  v1::JobSpec most = hccl_spec("most", 1, 1, "command");
  for (const std::uint32_t id : {0U, 1U, 2U, 4U, 5U, 6U})
    most.mutable_resources()->add_device_ids(id);
  most.mutable_resources()->add_hosts("n0");
  world.submit("j1", most);
  EXPECT_EQ(try_place(world, hccl_spec("a", 1, 2)).nodes.at(0).node, NodeName("n1"));
  EXPECT_EQ(try_place(world, hccl_spec("a", 1, 1)).nodes.at(0).node, NodeName("n0"));
}

TEST(CardPlacement, GroupsAreThoseOfTheHostsNumbers) {
  SmallWorld world;
  v1::Inventory inventory = SmallWorld::inventory(4, "10.0.0.1", "ascend910");
  for (int i = 0; i < 4; ++i)
    inventory.mutable_devices(i)->set_physical_id(static_cast<std::uint32_t>(i) + 2);
  add_cards(world, "n0", inventory);
  EXPECT_THAT(try_place(world, hccl_spec("a", 1, 2)).nodes.at(0).devices, ElementsAre(0U, 1U))
      << "2 and 3 of the host";
  const PlaceResult four = try_place(world, hccl_spec("a", 1, 4));
  EXPECT_TRUE(four.never);
  EXPECT_EQ(four.why,
            "need 1 node with 4 devices of one group (0-3 or 4-7); 0 of 1 registered node could "
            "do: 'n0' has 2+2 ascend910");
}

TEST(CardPlacement, WhatNoneOfThemCanFormIsRefused) {
  SmallWorld world;
  add_cards(world, "n0", SmallWorld::inventory(8, "10.0.0.1", "ascend910"));
  for (const char* type : {"auto", "ascend"}) {
    v1::JobSpec spec = hccl_spec("a", 1, 3);
    spec.mutable_resources()->set_type(type);
    const PlaceResult result = try_place(world, spec);
    EXPECT_TRUE(result.never);
    EXPECT_THAT(
        result.why,
        HasSubstr(
            "'n0' cannot give them: 3 devices; on 910 a server takes part with 1, 2, 4 or 8"));
  }
  v1::JobSpec across = hccl_spec("a", 1, 0);
  for (const std::uint32_t id : {2U, 3U, 4U, 5U}) across.mutable_resources()->add_device_ids(id);
  EXPECT_THAT(
      try_place(world, across).why,
      HasSubstr(
          "4 devices out of both groups of a 910 server; take them out of 0-3 or out of 4-7"));
  v1::JobSpec elsewhere = across;
  elsewhere.mutable_resources()->set_type("nvidia");
  EXPECT_THAT(try_place(world, elsewhere).why, HasSubstr("'n0' has 8 ascend910"))
      << "not: none of these devices";
  // HCCL does not limit these: one program, or an engine that does not use HCCL.
  v1::JobSpec once = hccl_spec("a", 1, 3);
  once.mutable_launch()->set_per(v1::LAUNCH_PER_ONCE);
  EXPECT_THAT(try_place(world, once).nodes.at(0).devices, ElementsAre(0U, 1U, 2U));
  EXPECT_THAT(try_place(world, hccl_spec("a", 1, 3, "command")).nodes.at(0).devices,
              ElementsAre(0U, 1U, 2U));
  // There is a node with another chip: the job gets that node.
  add_cards(world, "n1", SmallWorld::inventory(8, "10.0.0.2", "ascend910b"));
  v1::JobSpec any = hccl_spec("a", 1, 3);
  any.mutable_resources()->set_type("ascend");
  EXPECT_EQ(try_place(world, any).nodes.at(0).node, NodeName("n1"));
}

TEST(CardPlacement, ACardThatIsBadBreaksItsGroup) {
  SmallWorld world;
  add_cards(world, "n0", SmallWorld::inventory(8, "10.0.0.1", "ascend910"));
  v1::DeviceReading bad;
  bad.set_id(5);
  bad.set_health(v1::DEVICE_HEALTH_BAD);
  world.presence.nodes.at(NodeName("n0")).devices[5] = bad;
  EXPECT_THAT(try_place(world, hccl_spec("a", 1, 2)).nodes.at(0).devices, ElementsAre(4U, 6U));
  EXPECT_FALSE(never_fits(world.ledger, world.presence,
                          JobRecord{.id = JobId("p"), .spec = hccl_spec("a", 1, 4)}, world.now,
                          world.limits));
  EXPECT_TRUE(never_fits(world.ledger, world.presence,
                         JobRecord{.id = JobId("p"), .spec = hccl_spec("a", 1, 8)}, world.now,
                         world.limits));
}

TEST(CardPlacement, AListKeepsItsOrderWhereProgramsCanFollowIt) {
  SmallWorld world;
  add_cards(world, "n0", SmallWorld::inventory(4, "10.0.0.1"));
  v1::JobSpec spec = hccl_spec("a", 1, 0);
  for (const std::uint32_t id : {2U, 0U}) spec.mutable_resources()->add_device_ids(id);
  EXPECT_THAT(try_place(world, spec).nodes.at(0).devices, ElementsAre(2U, 0U));
  SmallWorld cards;
  add_cards(cards, "n0", SmallWorld::inventory(4, "10.0.0.1", "ascend910b"));
  EXPECT_THAT(try_place(cards, spec).nodes.at(0).devices, ElementsAre(0U, 2U))
      << "Ascend's runtime numbers visible devices upwards";
  spec.set_engine("mindformers");
  EXPECT_THAT(try_place(cards, spec).nodes.at(0).devices, ElementsAre(2U, 0U))
      << "by a rank table every rank is told its own";
}

// CPU slots, or cards whose agent cannot run hccn_tool: the job would end at its start.
TEST(CardPlacement, ATableOverSeveralNodesNeedsAddresses) {
  SmallWorld world;
  for (const char* name : {"n0", "n1", "n2"})
    add_cards(world, name, SmallWorld::inventory(2, name));
  const PlaceResult result = try_place(world, hccl_spec("a", 2, 2, "mindformers"));
  EXPECT_TRUE(result.never);
  EXPECT_THAT(result.why, HasSubstr("need 2 nodes with 2 devices; 0 of 3 registered nodes could "
                                    "do: 'n0' has 2 cpu, 0 of them with an address"));
  EXPECT_THAT(result.why, HasSubstr("launch.launcher: msrun, which needs none"));
  EXPECT_EQ(try_place(world, hccl_spec("a", 1, 2, "mindformers")).nodes.size(), 1U)
      << "of one server no address is needed";
  EXPECT_EQ(try_place(world, hccl_spec("a", 2, 2)).nodes.size(), 2U);
  v1::JobSpec msrun = hccl_spec("a", 2, 2, "mindformers");
  msrun.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  EXPECT_EQ(try_place(world, msrun).why.find("address"), std::string::npos);
  // One card has no address: the cards with addresses are chosen.
  for (const char* name : {"n0", "n1"}) {
    v1::Inventory inventory = SmallWorld::inventory(3, name, "ascend910b");
    for (int i = 1; i < 3; ++i)
      inventory.mutable_devices(i)->add_addresses(fmt::format("192.1.{}.{}", name[1], i));
    add_cards(world, name, inventory);
  }
  const PlaceResult with = try_place(world, hccl_spec("a", 2, 2, "mindformers"));
  ASSERT_EQ(with.nodes.size(), 2U) << with.why;
  EXPECT_THAT(with.nodes[1].devices, ElementsAre(1U, 2U));
  EXPECT_NE(table_sha256(hccl_spec("a", 2, 2, "mindformers"), AttemptNo(1), with.nodes), "");
}

v1::Inventory in_pod(const std::string& name, const std::string& pod, std::uint32_t server) {
  v1::Inventory inventory = SmallWorld::inventory(2, name, "ascend910_93");
  for (v1::Device& device : *inventory.mutable_devices()) {
    device.set_super_pod_id(pod);
    device.set_super_device_id(std::to_string(2 * server + device.id()));
  }
  return inventory;
}

std::string nodes_of(const PlaceResult& result) {
  std::string text;
  for (const PlacedNode& node : result.nodes) text += (text.empty() ? "" : " ") + node.node.str();
  return text;
}

TEST(SuperPods, NodesOfOneStandTogether) {
  SmallWorld world;
  // By name they alternate.
  for (std::uint32_t i = 0; i < 6; ++i)
    add_cards(world, fmt::format("n{}", i),
              in_pod(fmt::format("n{}", i), i % 2 == 0 ? "p" : "q", i));
  EXPECT_EQ(nodes_of(try_place(world, hccl_spec("a", 2, 2))), "n0 n2");
  EXPECT_EQ(nodes_of(try_place(world, hccl_spec("a", 4, 2))), "n0 n2 n1 n3");
  EXPECT_EQ(nodes_of(try_place(world, hccl_spec("a", 5, 2))), "n0 n2 n4 n1 n3");
  // Hosts that a user names stay in their order.
  v1::JobSpec named = hccl_spec("a", 4, 2);
  for (const char* host : {"n0", "n1", "n2", "n3"}) named.mutable_resources()->add_hosts(host);
  EXPECT_EQ(nodes_of(try_place(world, named)), "n0 n1 n2 n3");
}

TEST(SuperPods, ATableTakesAsManyOutOfEvery) {
  SmallWorld world;
  for (std::uint32_t i = 0; i < 5; ++i)
    add_cards(world, fmt::format("n{}", i), in_pod(fmt::format("n{}", i), i < 3 ? "p" : "q", i));
  EXPECT_EQ(nodes_of(try_place(world, hccl_spec("a", 3, 2, "mindformers"))), "n0 n1 n2");
  const PlaceResult five = try_place(world, hccl_spec("a", 5, 2, "mindformers"));
  EXPECT_TRUE(five.never);
  EXPECT_THAT(five.why, HasSubstr("5 of 5 registered nodes could do; a rank table takes as many "
                                  "nodes out of every super-pod (out of several only such whose "
                                  "cards have addresses), and there are 3 in 'p', 2 in 'q'"));
  EXPECT_TRUE(try_place(world, hccl_spec("a", 4, 2, "mindformers")).never) << "no addresses";
  EXPECT_EQ(nodes_of(try_place(world, hccl_spec("a", 5, 2))), "n0 n1 n2 n3 n4")
      << "others are not bound to it";
  for (std::uint32_t i = 0; i < 5; ++i) {
    v1::Inventory inventory = in_pod(fmt::format("n{}", i), i < 3 ? "p" : "q", i);
    for (v1::Device& device : *inventory.mutable_devices())
      device.add_addresses(fmt::format("192.1.{}.{}", i, device.id()));
    add_cards(world, fmt::format("n{}", i), inventory);
  }
  const PlaceResult four = try_place(world, hccl_spec("a", 4, 2, "mindformers"));
  EXPECT_EQ(nodes_of(four), "n0 n1 n3 n4");
  EXPECT_NE(table_sha256(hccl_spec("a", 4, 2, "mindformers"), AttemptNo(1), four.nodes), "")
      << "the judge takes it";
  // One node of 'q' is busy: the nodes would be enough, but not now.
  v1::JobSpec busy = hccl_spec("busy", 1, 2);
  busy.mutable_resources()->add_hosts("n4");
  world.submit("j1", busy);
  const PlaceResult later = try_place(world, hccl_spec("a", 4, 2, "mindformers"));
  EXPECT_FALSE(later.never);
  EXPECT_THAT(later.why, HasSubstr("4 fit: 'n4' has 0 of 2 devices free ('busy' attempt 1); a rank "
                                   "table takes as many nodes out of every super-pod, and there "
                                   "are 3 in 'p', 1 in 'q'"));
}

TEST(SuperPods, ABrokenGangComesBackWhereItWas) {
  SmallWorld world;
  for (std::uint32_t i = 0; i < 3; ++i)
    add_cards(world, fmt::format("n{}", i), in_pod(fmt::format("n{}", i), "q", i));
  world.submit("j1", hccl_spec("a", 2, 2));
  for (std::uint32_t i = 3; i < 5; ++i)
    add_cards(world, fmt::format("n{}", i), in_pod(fmt::format("n{}", i), "p", i));
  world.exited("j1", 1, "n0", 0, 1);
  world.swept("j1", 1, "n0");
  world.swept("j1", 1, "n1");
  const AttemptRecord& second = *world.job("j1").attempt(AttemptNo(2));
  EXPECT_EQ(second.parts[0].placed.node, NodeName("n0"))
      << "'p' would be filled better, but the job was in 'q'";
  EXPECT_EQ(second.parts[1].placed.node, NodeName("n1"));
}

v1::Inventory addressed_from(const std::string& name, const std::string& pod, std::uint32_t server,
                             std::uint32_t cards, std::uint32_t first) {
  v1::Inventory inventory = SmallWorld::inventory(cards, name, "ascend910_93");
  for (v1::Device& device : *inventory.mutable_devices()) {
    device.set_super_pod_id(pod);
    device.set_super_device_id(std::to_string(cards * server + device.id()));
    if (device.id() >= first) device.add_addresses(fmt::format("192.1.{}.{}", server, device.id()));
  }
  return inventory;
}

// Regression: in each super-pod one node has no addresses, and another one has addresses only for
// its last cards. The job was placed on cards that HCCL then refused.
TEST(SuperPods, ATableOverSeveralTakesCardsWithAddresses) {
  SmallWorld world;
  const v1::JobSpec spec = hccl_spec("a", 2, 2, "mindformers");
  add_cards(world, "n0", addressed_from("n0", "p", 0, 2, 2));
  add_cards(world, "n1", addressed_from("n1", "p", 1, 2, 0));
  add_cards(world, "n2", addressed_from("n2", "q", 2, 2, 2));
  add_cards(world, "n3", addressed_from("n3", "q", 3, 4, 2));
  const v1::JobSpec one_pod = hccl_spec("one", 1, 2);
  EXPECT_EQ(nodes_of(try_place(world, spec)), "n0 n1") << "in one super-pod none is needed";
  v1::JobSpec busy = one_pod;
  for (const auto& [job, host] : {std::pair{"j1", "n0"}, std::pair{"j2", "n2"}}) {
    busy.set_name(host);
    busy.mutable_resources()->clear_hosts();
    busy.mutable_resources()->add_hosts(host);
    world.submit(job, busy);
  }
  const PlaceResult placed = try_place(world, spec);
  EXPECT_EQ(nodes_of(placed), "n1 n3") << placed.why;
  EXPECT_THAT(placed.nodes.at(1).devices, ElementsAre(2U, 3U));
  EXPECT_NE(table_sha256(spec, AttemptNo(1), placed.nodes), "") << "the judge takes it";

  // All four nodes are idle, and two of them can never be used.
  SmallWorld idle;
  for (std::uint32_t i = 0; i < 4; ++i)
    add_cards(idle, fmt::format("n{}", i),
              addressed_from(fmt::format("n{}", i), i < 2 ? "p" : "q", i, 2, i % 2 == 0 ? 2 : 0));
  const PlaceResult four = try_place(idle, hccl_spec("a", 4, 2, "mindformers"));
  EXPECT_TRUE(four.never) << "it would wait for ever";
  EXPECT_THAT(four.why, HasSubstr("out of several only such whose cards have addresses"));
}

// In the hosts' order, the ranks would alternate: p, q, p, q.
TEST(SuperPods, ServersOfOneAreNeighboursInATableWhateverTheOrderOfHosts) {
  SmallWorld world;
  for (const auto& [name, pod, server] : {std::tuple{"p0", "p", 0U}, std::tuple{"q0", "q", 1U},
                                          std::tuple{"p1", "p", 2U}, std::tuple{"q1", "q", 3U}})
    add_cards(world, name, addressed_from(name, pod, server, 2, 0));
  v1::JobSpec spec = hccl_spec("a", 4, 2, "mindformers");
  for (const char* host : {"q0", "p0", "q1", "p1"}) spec.mutable_resources()->add_hosts(host);
  const PlaceResult placed = try_place(world, spec);
  EXPECT_EQ(nodes_of(placed), "q0 q1 p0 p1") << placed.why;
  EXPECT_NE(table_sha256(spec, AttemptNo(1), placed.nodes), "");
}

// Regression: the suggested remedy is refused with a rank table.
TEST(CardPlacement, WhatHelpsWithATableIsNamed) {
  SmallWorld world;
  add_cards(world, "n0", SmallWorld::inventory(16, "10.0.0.1", "ascend910b"));
  v1::JobSpec spec = hccl_spec("a", 1, 0, "mindformers");
  for (const std::uint32_t id : {0U, 9U}) spec.mutable_resources()->add_device_ids(id);
  (*spec.mutable_runtime()->mutable_env())["HCCL_INTRA_ROCE_ENABLE"] = "1";
  EXPECT_THAT(
      try_place(world, spec).why,
      HasSubstr("; and never in a rank table that muster makes: launch.launcher: msrun has none"));
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  EXPECT_THAT(try_place(world, spec).nodes.at(0).devices, ElementsAre(0U, 9U));
}

}  // namespace
}  // namespace muster::core
