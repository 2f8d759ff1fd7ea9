// resources.rank_table: a table of the user fixes nodes, devices and the order of ranks.
#include "controller/core/placement/table_hosts.h"

#include <gmock/gmock.h>

#include "controller/core/model/requirements.h"
#include "controller/core/placement/placing.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One server in its file: name, then "device:rank" pairs.
struct Listed {
  std::string server;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranks;
};

std::string own_table(const std::vector<Listed>& servers) {
  std::string text;
  for (std::size_t s = 0; s < servers.size(); ++s) {
    std::string devices;
    for (const auto& [device, rank] : servers[s].ranks)
      devices +=
          fmt::format(R"({}{{"device_id": "{}", "device_ip": "192.1.{}.{}", "rank_id": "{}"}})",
                      devices.empty() ? "" : ", ", device, s, device, rank);
    text += fmt::format(R"({}{{"server_id": "{}", "device": [{}]}})", s == 0 ? "" : ", ",
                        servers[s].server, devices);
  }
  return fmt::format(
      R"({{"version": "1.0", "server_count": "{}", "server_list": [{}], "status": "completed"}})",
      servers.size(), text);
}

v1::JobSpec with_table(const std::vector<Listed>& servers) {
  v1::JobSpec spec = SmallWorld::spec("own", static_cast<std::uint32_t>(servers.size()),
                                      static_cast<std::uint32_t>(servers.front().ranks.size()));
  spec.set_engine("mindformers");
  spec.mutable_resources()->mutable_rank_table()->set_name("hccl.json");
  spec.mutable_resources()->mutable_rank_table()->set_content(own_table(servers));
  return spec;
}

// Four cards in a container, which sees cards 4 to 7 of its host as 0 to 3.
void add_host(SmallWorld& world, const std::string& name, const std::string& address,
              const std::string& type = "ascend910b") {
  v1::Inventory inventory = SmallWorld::inventory(4, address, type);
  for (v1::Device& device : *inventory.mutable_devices()) device.set_physical_id(device.id() + 4);
  v1::NetworkInterface& storage = *inventory.add_interfaces();
  storage.set_name("eth1");
  storage.add_addresses("172.16." + address.substr(address.rfind('.') + 1) + ".1");
  world.put(RegisterNode{.node = NodeName(name),
                         .instance = InstanceId("i1"),
                         .boot_id = BootId("b1"),
                         .inventory = std::move(inventory)});
  world.see(Connected{.node = NodeName(name),
                      .connection = ConnectionId(++world.connections),
                      .instance = InstanceId("i1"),
                      .boot_id = BootId("b1")});
}

PlaceResult placed_by_table(const SmallWorld& world, const v1::JobSpec& spec) {
  JobRecord job;
  job.id = JobId("probe");
  job.spec = spec;
  return place(world.ledger, world.presence, job, world.now, world.limits);
}

SmallWorld three_hosts() {
  SmallWorld world;
  add_host(world, "n0", "10.0.0.1");
  add_host(world, "n1", "10.0.0.2");
  add_host(world, "n2", "10.0.0.3");
  return world;
}

TEST(OwnTable, GivesNodesDevicesAndOrder) {
  const SmallWorld world = three_hosts();
  // In the file, the last ranks are first; on n2, the second card has the lower rank. The table
  // names one server by its address, one by its name, and one by another address.
  const PlaceResult result = placed_by_table(world, with_table({{"10.0.0.1", {{5, 5}, {4, 4}}},
                                                                {"n2", {{7, 1}, {6, 0}}},
                                                                {"172.16.2.1", {{4, 3}, {6, 2}}}}));
  ASSERT_EQ(result.nodes.size(), 3U) << result.why;
  EXPECT_EQ(result.nodes[0].node, NodeName("n2"));
  EXPECT_THAT(result.nodes[0].devices, ElementsAre(2U, 3U));
  EXPECT_THAT(result.nodes[0].physical_ids, ElementsAre(6U, 7U));
  EXPECT_EQ(result.nodes[1].node, NodeName("n1"));
  EXPECT_THAT(result.nodes[1].devices, ElementsAre(2U, 0U)) << "by rank, not upwards";
  EXPECT_EQ(result.nodes[1].server_id, "172.16.2.1");
  EXPECT_EQ(result.nodes[1].first_rank, RankNo(2));
  EXPECT_EQ(result.nodes[2].node, NodeName("n0"));
  EXPECT_THAT(result.nodes[2].devices, ElementsAre(0U, 1U));
}

TEST(OwnTable, ComesBackInItsOrder) {
  SmallWorld world = three_hosts();
  world.submit("j1", with_table({{"n2", {{4, 0}}}, {"n0", {{4, 1}}}}));
  for (const std::uint32_t attempt : {1U, 2U}) {
    const AttemptRecord& placed = *world.job("j1").attempt(AttemptNo(attempt));
    EXPECT_EQ(placed.parts[0].placed.node, NodeName("n2"));
    EXPECT_EQ(placed.parts[1].placed.node, NodeName("n0"));
    EXPECT_EQ(placed.table_sha256.size(), 64U);
    EXPECT_EQ(placed.table_sha256, world.job("j1").attempts.front().table_sha256)
        << "the user's own bytes";
    world.exited("j1", attempt, "n2", 0, 1);
    world.swept("j1", attempt, "n2");
    world.swept("j1", attempt, "n0");
  }
}

TEST(OwnTable, WaitsForItsOwnDevicesAlone) {
  SmallWorld world = three_hosts();
  world.submit("j1", with_table({{"n0", {{5, 0}}}}));
  const PlaceResult other = placed_by_table(world, with_table({{"n0", {{4, 0}, {5, 1}}}}));
  EXPECT_FALSE(other.never);
  EXPECT_EQ(other.why,
            "need 1 node with the devices of rank table 'hccl.json', 0 fit: 'n0' has 1 of 2 "
            "devices free ('own' attempt 1)");
}

TEST(OwnTable, WhatCanNeverBeIsReported) {
  SmallWorld world = three_hosts();
  struct Wrong {
    std::vector<Listed> servers;
    const char* why;
  };
  for (const Wrong& one : {
           Wrong{{{"10.0.0.9", {{4, 0}}}, {"n0", {{4, 1}}}, {"n7", {{4, 2}}}},
                 "resources.rank_table 'hccl.json': '10.0.0.9', 'n7' are no registered nodes; "
                 "there are 'n0' (10.0.0.1), 'n1' (10.0.0.2), 'n2' (10.0.0.3), and a "
                 "server_id is a node's name or address"},
           Wrong{
               {{"10.0.0.1", {{4, 0}}}, {"n0", {{5, 1}}}},
               "resources.rank_table 'hccl.json': servers '10.0.0.1' and 'n0' are both node 'n0'"},
           Wrong{{{"n0", {{3, 0}}}},
                 "need 1 node with the devices of rank table 'hccl.json'; 0 of 3 registered nodes "
                 "could do: 'n0' has no ascend910b with the number 3 (device_id)"},
       }) {
    const PlaceResult result = placed_by_table(world, with_table(one.servers));
    EXPECT_TRUE(result.never);
    EXPECT_EQ(result.why, one.why);
  }
  // Two agents on one machine.
  add_host(world, "n3", "10.0.0.1");
  EXPECT_THAT(placed_by_table(world, with_table({{"10.0.0.1", {{4, 0}}}})).why,
              HasSubstr("server '10.0.0.1' is the address of nodes 'n0' and 'n3'; write the name "
                        "of one of them as its server_id"));
  EXPECT_EQ(placed_by_table(world, with_table({{"n3", {{4, 0}}}})).nodes.size(), 1U);
}

TEST(OwnTable, ThatTheChipRefusesIsRefused) {
  SmallWorld world;
  add_host(world, "n0", "10.0.0.1", "ascend910");
  const PlaceResult result = placed_by_table(world, with_table({{"n0", {{4, 0}, {5, 1}, {6, 2}}}}));
  EXPECT_TRUE(result.never);
  EXPECT_THAT(result.why, HasSubstr("HCCL would refuse the table on 910: server_list[0].device: 3 "
                                    "devices; on 910 a server takes part with 1, 2, 4 or 8"));
  EXPECT_EQ(placed_by_table(world, with_table({{"n0", {{4, 0}, {5, 1}}}})).nodes.size(), 1U);
}

TEST(OwnTable, ThatSaysAnotherAddressThanTheCardHasIsRefused) {
  SmallWorld world;
  v1::Inventory inventory = SmallWorld::inventory(1, "10.0.0.1", "ascend910b");
  inventory.mutable_devices(0)->add_addresses("192.1.0.77");
  world.put(RegisterNode{.node = NodeName("n0"),
                         .instance = InstanceId("i1"),
                         .boot_id = BootId("b1"),
                         .inventory = inventory});
  EXPECT_THAT(
      placed_by_table(world, with_table({{"n0", {{0, 0}}}})).why,
      HasSubstr(
          "'n0' says that its card 0 has the address 192.1.0.77, and the table has 192.1.0.0"));
}

TEST(OwnTable, RequirementsNameItByItsHash) {
  v1::JobSpec spec = with_table({{"n0", {{4, 0}}}});
  const std::string requirements = requirements_of(spec);
  spec.mutable_resources()->mutable_rank_table()->set_content(own_table({{"n0", {{5, 0}}}}));
  EXPECT_NE(requirements_of(spec), requirements);
  spec.mutable_resources()->mutable_rank_table()->set_content(std::string(400'000, ' '));
  EXPECT_LT(requirements_of(spec).size(), 500U);
}

}  // namespace
}  // namespace muster::core
