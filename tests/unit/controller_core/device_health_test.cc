#include "controller/core/placement/device_health.h"

#include <gtest/gtest.h>

#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

// A node with cards whose agent probes them.
struct Probed : SmallWorld {
  explicit Probed(std::uint32_t devices) {
    v1::Inventory inventory = SmallWorld::inventory(devices, "n0", "ascend910b");
    inventory.set_probes_devices(true);
    put(RegisterNode{.node = NodeName("n0"),
                     .instance = InstanceId("i1"),
                     .boot_id = BootId("b1"),
                     .inventory = inventory,
                     .version = "test"});
    connect();
  }
  void connect() {
    see(Connected{.node = NodeName("n0"),
                  .connection = ConnectionId(++connections),
                  .instance = InstanceId("i1"),
                  .boot_id = BootId("b1")});
  }
  // A reading of all devices, healthy unless changed.
  static HeartbeatHeard probe(std::uint32_t devices) {
    HeartbeatHeard heard{.node = NodeName("n0")};
    for (std::uint32_t id = 0; id < devices; ++id) {
      v1::DeviceReading& reading = *heard.heartbeat.add_devices();
      reading.set_id(id);
      reading.set_health(v1::DEVICE_HEALTH_OK);
    }
    return heard;
  }
  void tell(HeartbeatHeard heard) {
    heard.connection = ConnectionId(connections);
    see(heard);
  }
  std::string why(const std::string& id) {
    return place(ledger, presence, job(id), now, limits).why;
  }
  std::vector<std::uint32_t> devices_of(const std::string& id) {
    return job(id).attempts.at(0).parts.at(0).placed.devices;
  }
};

void occupy(v1::DeviceReading& reading, std::uint64_t pid, const std::string& name = "",
            const std::string& user = "") {
  v1::DeviceOccupant& one = *reading.add_occupants();
  one.set_pid(pid);
  one.set_name(name);
  one.set_user(user);
}

TEST(DeviceHealth, WhyOneIsOfNoUse) {
  NodeSeen seen;
  EXPECT_FALSE(unusable(seen, 3)) << "nobody has looked";
  v1::DeviceReading& reading = seen.devices[3];
  reading.set_id(3);
  for (const auto health :
       {v1::DEVICE_HEALTH_UNSPECIFIED, v1::DEVICE_HEALTH_OK, v1::DEVICE_HEALTH_WARNING}) {
    reading.set_health(health);
    EXPECT_FALSE(unusable(seen, 3)) << v1::DeviceHealth_Name(health);
  }
  occupy(reading, 4711, "python", "alice");
  EXPECT_EQ(unusable(seen, 3), "device 3 is in use by pid 4711 (alice, python)");
  occupy(reading, 4712);
  EXPECT_EQ(unusable(seen, 3), "device 3 is in use by pid 4711 (alice, python) and 1 more");
  reading.clear_occupants();
  occupy(reading, 7, "", "uid 1005");
  EXPECT_EQ(unusable(seen, 3), "device 3 is in use by pid 7 (uid 1005)");
  reading.mutable_occupants(0)->clear_user();
  EXPECT_EQ(unusable(seen, 3), "device 3 is in use by pid 7");
  reading.set_health(v1::DEVICE_HEALTH_BAD);
  EXPECT_EQ(unusable(seen, 3), "device 3 is bad");
  reading.set_health_text("npu-smi says Alarm: 80E01801");
  EXPECT_EQ(unusable(seen, 3), "device 3 is bad: npu-smi says Alarm: 80E01801");
  EXPECT_FALSE(unusable(seen, 2));
}

TEST(DeviceHealth, NewWorkGoesToDevicesThatAreWell) {
  Probed world(4);
  HeartbeatHeard probe = Probed::probe(4);
  probe.heartbeat.mutable_devices(0)->set_health(v1::DEVICE_HEALTH_BAD);
  occupy(*probe.heartbeat.mutable_devices(2), 4711, "python", "alice");
  world.tell(probe);
  world.submit("j1", SmallWorld::spec("two", 1, 2));
  EXPECT_EQ(world.devices_of("j1"), (std::vector<std::uint32_t>{1, 3}));
}

TEST(DeviceHealth, AJobWaitsUntilTheDevicesAreWell) {
  Probed world(2);
  HeartbeatHeard probe = Probed::probe(2);
  occupy(*probe.heartbeat.mutable_devices(1), 4711, "python", "alice");
  world.tell(probe);
  world.submit("j1", SmallWorld::spec("two", 1, 2));
  EXPECT_TRUE(world.job("j1").attempts.empty());
  EXPECT_NE(world.why("j1").find(
                "'n0' has 1 of 2 devices free (device 1 is in use by pid 4711 (alice, python))"),
            std::string::npos)
      << world.why("j1");
  world.tell(HeartbeatHeard{.node = NodeName("n0")});  // without a probe: the last one stays valid
  EXPECT_TRUE(world.job("j1").attempts.empty());
  world.tell(Probed::probe(2));
  EXPECT_EQ(world.devices_of("j1"), (std::vector<std::uint32_t>{0, 1}));
}

TEST(DeviceHealth, WhatRunsIsLeftAlone) {
  Probed world(1);
  world.tell(Probed::probe(1));
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  world.started("j1", 1, "n0");
  HeartbeatHeard probe = Probed::probe(1);
  probe.heartbeat.mutable_devices(0)->set_health(v1::DEVICE_HEALTH_BAD);
  world.tell(probe);
  EXPECT_EQ(world.job("j1").attempts.back().state, AttemptState::Live);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Running);
}

// Regression: a controller that had just started placed a job on a card in alarm, before the
// agent's first heartbeat.
TEST(DeviceHealth, NothingIsPlacedBeforeTheFirstProbeIsHeard) {
  Probed world(1);
  world.submit("j1", SmallWorld::spec("one", 1, 1));
  EXPECT_TRUE(world.job("j1").attempts.empty());
  EXPECT_NE(world.why("j1").find("'n0' has not reported yet how its devices are"),
            std::string::npos)
      << world.why("j1");
  world.tell(Probed::probe(1));
  EXPECT_EQ(world.job("j1").attempts.size(), 1U);
  world.submit("j2", SmallWorld::spec("two", 1, 1));
  world.connect();
  EXPECT_TRUE(world.presence.nodes.at(NodeName("n0")).devices.empty())
      << "what an earlier connection said is old";
}

TEST(DeviceHealth, ReadingsHaveBounds) {
  Probed world(1);
  HeartbeatHeard probe = Probed::probe(3);
  v1::DeviceReading& reading = *probe.heartbeat.mutable_devices(0);
  reading.set_health_text(std::string(511, 'x') + "\xc3\xbc");  // the bound is within a character
  for (int pid = 1; pid < 100; ++pid)
    occupy(reading, static_cast<std::uint64_t>(pid), std::string(1'000, 'n'),
           std::string(1'000, 'u'));
  world.tell(probe);
  const auto& kept = world.presence.nodes.at(NodeName("n0")).devices;
  ASSERT_EQ(kept.size(), 1U) << "the others are not on this node";
  EXPECT_EQ(kept.at(0).health_text(), std::string(511, 'x'));
  EXPECT_EQ(kept.at(0).occupants_size(), 16);
  EXPECT_EQ(kept.at(0).occupants(0).name().size(), 128U);
  EXPECT_EQ(kept.at(0).occupants(0).user().size(), 128U);
}

}  // namespace
}  // namespace muster::core
