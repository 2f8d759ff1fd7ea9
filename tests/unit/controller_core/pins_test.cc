// What a placement records about its nodes, so that a launch is a function of it: numbers,
// addresses, interfaces, ports. And which nodes do not get a job, because of what they or their
// agents lack.
#include <gmock/gmock.h>

#include "common/digest/sha256.h"
#include "common/engine/ranktable/table_text.h"
#include "controller/core/model/requirements.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/placement/placed_table.h"
#include "controller/core/placement/placing.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PlaceResult place_spec(const SmallWorld& world, const v1::JobSpec& spec) {
  JobRecord job;
  job.id = JobId("probe");
  job.spec = spec;
  return place(world.ledger, world.presence, job, world.now, world.limits);
}

// A server with eight cards, of which a container sees the last `devices`.
v1::Inventory ascend(std::uint32_t devices, const std::string& address,
                     const std::string& type = "ascend910b") {
  v1::Inventory inventory = SmallWorld::inventory(devices, address, type);
  for (v1::Device& device : *inventory.mutable_devices()) {
    device.set_model("910B3");
    device.set_physical_id(8 - devices + device.id());
    device.add_addresses(fmt::format("192.168.{}.{}", address.back() - '0', 10 + device.id()));
  }
  inventory.clear_interfaces();
  for (const auto& [name, ip] : {std::pair<std::string, std::string>{"lo", "127.0.0.1"},
                                 {"eth0", address},
                                 {"ib0", "172.16.0." + address.substr(7)}}) {
    v1::NetworkInterface& one = *inventory.add_interfaces();
    one.set_name(name);
    one.add_addresses(ip);
  }
  inventory.add_interfaces()->set_name("bond0");
  return inventory;
}

void join(SmallWorld& world, const std::string& name, v1::Inventory inventory) {
  const Decision decision = world.put(RegisterNode{.node = NodeName(name),
                                                   .instance = InstanceId("i1"),
                                                   .boot_id = BootId("b1"),
                                                   .inventory = std::move(inventory),
                                                   .version = "0.3.0"});
  ASSERT_FALSE(decision.refusal);
  world.see(Connected{.node = NodeName(name),
                      .connection = ConnectionId(++world.connections),
                      .instance = InstanceId("i1"),
                      .boot_id = BootId("b1")});
}

v1::JobSpec mindformers(const std::string& name, std::uint32_t nodes, std::uint32_t devices) {
  v1::JobSpec spec = SmallWorld::spec(name, nodes, devices);
  spec.set_engine("mindformers");
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_RANKTABLE);
  spec.mutable_resources()->set_type("ascend");
  return spec;
}

TEST(Pins, AreWhatTheNodeReportedOfItselfAndItsCards) {
  SmallWorld world;
  join(world, "n1", ascend(4, "10.0.0.1"));
  const PlaceResult placed = place_spec(world, SmallWorld::spec("a", 1, 2));
  ASSERT_EQ(placed.nodes.size(), 1U) << placed.why;
  const PlacedNode& node = placed.nodes[0];
  EXPECT_EQ(node.address, "10.0.0.1");
  EXPECT_EQ(node.interface, "eth0");
  EXPECT_EQ(node.device_type, "ascend910b");
  EXPECT_EQ(node.device_model, "910B3");
  EXPECT_THAT(node.devices, ElementsAre(0U, 1U));
  EXPECT_THAT(node.physical_ids, ElementsAre(4U, 5U));
  EXPECT_THAT(node.device_ips, ElementsAre("192.168.1.10", "192.168.1.11"));
  EXPECT_THAT(node.super_device_ids, IsEmpty());
  EXPECT_EQ(node.super_pod_id, "");
  EXPECT_EQ(node.server_id, "");
}

TEST(Pins, AnInterfaceIsKnownByItsAddressHoweverThatIsWritten) {
  SmallWorld world;
  v1::Inventory inventory = SmallWorld::inventory(1, "fd00:0::1");
  inventory.clear_interfaces();
  v1::NetworkInterface& one = *inventory.add_interfaces();
  one.set_name("eth1");
  one.add_addresses("10.0.0.9");
  one.add_addresses("fd00::1");
  join(world, "n1", inventory);
  EXPECT_EQ(place_spec(world, SmallWorld::spec("a", 1, 1)).nodes.at(0).interface, "eth1");
}

TEST(Pins, ASuperPodIsPinnedWhenAllItsCardsAreInIt) {
  SmallWorld world;
  v1::Inventory inventory = ascend(8, "10.0.0.1", "ascend910_93");
  for (v1::Device& device : *inventory.mutable_devices()) {
    device.set_super_device_id(std::to_string(16'777'216 + device.id()));
    device.set_super_pod_id("3");
  }
  join(world, "n1", inventory);
  PlacedNode node = place_spec(world, SmallWorld::spec("a", 1, 2)).nodes.at(0);
  EXPECT_EQ(node.super_pod_id, "3");
  EXPECT_THAT(node.super_device_ids, ElementsAre("16777216", "16777217"));
  EXPECT_THAT(node.physical_ids, IsEmpty()) << "the same as its numbers";
  inventory.mutable_devices(1)->set_super_pod_id("4");
  join(world, "n1", inventory);
  node = place_spec(world, SmallWorld::spec("a", 1, 2)).nodes.at(0);
  EXPECT_EQ(node.super_pod_id, "");
}

// A private cluster's nodes are on one host: HCCL refuses a table that contains one server twice.
TEST(Pins, NodesOfOneAddressAreServersOfTheirOwnNames) {
  SmallWorld world;
  v1::Inventory other = ascend(4, "10.0.0.1");
  for (v1::Device& device : *other.mutable_devices())
    device.set_addresses(0, fmt::format("192.168.9.{}", device.id()));
  join(world, "n1", ascend(4, "10.0.0.1"));
  join(world, "n2", other);
  const PlaceResult placed = place_spec(world, mindformers("a", 2, 4));
  ASSERT_EQ(placed.nodes.size(), 2U) << placed.why;
  EXPECT_EQ(placed.nodes[0].server_id, "n1");
  EXPECT_EQ(placed.nodes[1].server_id, "n2");
  EXPECT_NE(table_sha256(mindformers("a", 2, 4), AttemptNo(1), placed.nodes), "");
}

TEST(Interface, ANamedOneHasTheAddress) {
  SmallWorld world;
  join(world, "n1", ascend(2, "10.0.0.1"));
  join(world, "n2", ascend(2, "10.0.0.2"));
  v1::JobSpec spec = SmallWorld::spec("a", 2, 2);
  spec.mutable_network()->set_interface("ib0");
  const PlaceResult placed = place_spec(world, spec);
  ASSERT_EQ(placed.nodes.size(), 2U) << placed.why;
  EXPECT_EQ(placed.nodes[0].address, "172.16.0.1");
  EXPECT_EQ(placed.nodes[1].address, "172.16.0.2");
  EXPECT_EQ(placed.nodes[1].interface, "ib0");
}

TEST(Interface, ANodeWithoutItIsNamedWithThoseItHas) {
  SmallWorld world;
  join(world, "n1", ascend(2, "10.0.0.1"));
  v1::Inventory without = SmallWorld::inventory(2, "n2", "ascend910b");
  without.clear_interfaces();
  join(world, "n2", without);
  v1::JobSpec spec = SmallWorld::spec("a", 1, 1);
  spec.mutable_network()->set_interface("ib7");
  PlaceResult placed = place_spec(world, spec);
  EXPECT_TRUE(placed.never);
  EXPECT_EQ(placed.why,
            "need 1 node with 1 device on interface 'ib7'; 0 of 2 registered nodes could do: 'n1' "
            "has no interface 'ib7' (lo, eth0, ib0, bond0), 'n2' reports no interface 'ib7', "
            "and no other; network.interface is one that every node of the job has, with an "
            "address: name another, or leave it out");
  spec.mutable_network()->set_interface("bond0");
  placed = place_spec(world, spec);
  EXPECT_THAT(placed.why, HasSubstr("'n1' has no address on interface 'bond0'"));
  EXPECT_THAT(
      world.put(SubmitJob{.job = JobId("j"), .request_id = {}, .spec = spec, .spec_hash = "h"})
          .refusal->message,
      HasSubstr("interface 'bond0'"));
}

// A job with an interface that no node has needs the same devices as other jobs. It delays nobody.
TEST(Interface, AJobThatWaitsForAnotherNodeLetsOthersPass) {
  SmallWorld world;
  v1::JobSpec interface = SmallWorld::spec("interface", 1, 1);
  interface.mutable_network()->set_interface("ib7");
  world.submit("j1", interface);
  world.submit("j2", SmallWorld::spec("plain", 1, 1));
  join(world, "n1", ascend(1, "10.0.0.1"));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
}

// MindSpore's scheduler, on the node of rank 0: ranks of other nodes may need it when the ranks of
// its own node have ended.
TEST(Auxiliaries, AreAskedToStopWhenTheLastRankOfTheJobHasEnded) {
  for (const bool msrun : {true, false}) {
    SmallWorld world;
    for (const char* name : {"n1", "n2"})
      join(world, name, ascend(8, std::string("10.0.0.") + name[1]));
    v1::JobSpec spec = mindformers("a", 2, 1);
    if (msrun) spec.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
    world.submit("a", spec);
    for (const char* name : {"n1", "n2"}) world.started("a", 1, name);
    const Assignment run{.job = JobId("a"), .attempt = AttemptNo(1), .want = Want::Run};
    world.exited("a", 1, "n1", 0, 0);
    EXPECT_THAT(desired(world.ledger, NodeName("n1")), ElementsAre(run));
    world.exited("a", 1, "n2", 1, 0);
    EXPECT_EQ(world.job("a").phase, JobPhase::Completing);
    EXPECT_THAT(
        desired(world.ledger, NodeName("n1")),
        ElementsAre(Assignment{
            .job = run.job, .attempt = run.attempt, .want = msrun ? Want::Stop : Want::Run}));
    for (const char* name : {"n1", "n2"}) world.swept("a", 1, name);
    EXPECT_EQ(world.job("a").phase, JobPhase::Succeeded);
  }
}

TEST(DeviceTypes, AscendIsAnyKindAndAGangOfOne) {
  SmallWorld world;
  join(world, "n1", ascend(2, "10.0.0.1", "ascend910"));
  join(world, "n2", ascend(2, "10.0.0.2", "ascend910b"));
  join(world, "n3", ascend(2, "10.0.0.3", "ascend910b"));
  v1::JobSpec spec = SmallWorld::spec("a", 1, 2);
  spec.mutable_resources()->set_type("ascend");
  EXPECT_EQ(place_spec(world, spec).nodes.at(0).node, NodeName("n1"));
  world.submit("j1", spec);
  EXPECT_EQ(place_spec(world, spec).nodes.at(0).device_type, "ascend910b")
      << "the other kind is busy";
  spec.mutable_resources()->set_nodes(2);
  const PlaceResult two = place_spec(world, spec);
  ASSERT_EQ(two.nodes.size(), 2U) << two.why;
  EXPECT_EQ(two.nodes[0].node, NodeName("n2"));
  EXPECT_EQ(two.nodes[1].node, NodeName("n3"));
  spec.mutable_resources()->set_nodes(3);
  EXPECT_TRUE(place_spec(world, spec).never);
  EXPECT_THAT(place_spec(world, spec).why, HasSubstr("'n1' has 2 ascend910"));
  spec.mutable_resources()->set_nodes(1);
  spec.mutable_resources()->set_type("ascend910");
  EXPECT_THAT(place_spec(world, spec).why,
              HasSubstr("'n1' has 0 of 2 devices free ('a' attempt 1)"));
  spec.mutable_resources()->set_type("ascend910_93");
  EXPECT_TRUE(place_spec(world, spec).never);
}

// A sick card gets no work. A job that cannot run without it waits for it, and others may pass.
TEST(Health, ASickDeviceGetsNoNewWork) {
  SmallWorld world;
  join(world, "n1", ascend(2, "10.0.0.1"));
  const auto say = [&](v1::DeviceHealth health) {
    v1::Heartbeat heartbeat;
    for (std::uint32_t id = 0; id < 2; ++id) {
      v1::DeviceReading& reading = *heartbeat.add_devices();
      reading.set_id(id);
      reading.set_health(id == 0 ? health : v1::DEVICE_HEALTH_OK);
      reading.set_health_text(id == 0 ? "npu-smi says Alarm" : "");
    }
    world.see(HeartbeatHeard{
        .node = NodeName("n1"), .connection = ConnectionId(1), .heartbeat = heartbeat});
  };
  say(v1::DEVICE_HEALTH_WARNING);
  EXPECT_THAT(place_spec(world, SmallWorld::spec("a", 1, 1)).nodes.at(0).devices, ElementsAre(0U));
  say(v1::DEVICE_HEALTH_BAD);
  EXPECT_THAT(place_spec(world, SmallWorld::spec("a", 1, 1)).nodes.at(0).devices, ElementsAre(1U));
  const PlaceResult both = place_spec(world, SmallWorld::spec("a", 1, 2));
  EXPECT_FALSE(both.never);
  EXPECT_EQ(both.why,
            "need 1 node with 2 devices, 0 fit: 'n1' has 1 of 2 devices free (device 0 is bad: "
            "npu-smi says Alarm)");
  EXPECT_FALSE(world.submit("j1", SmallWorld::spec("both", 1, 2)).refusal);
  world.submit("j2", SmallWorld::spec("one", 1, 1));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Queued);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
  world.exited("j2", 1, "n1", 0, 0);
  world.swept("j2", 1, "n1");
  say(v1::DEVICE_HEALTH_OK);
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
}

// --- ports for HCCL ------------------------------------------------------------------------------

v1::JobSpec on_ascend(const std::string& name, std::uint32_t devices) {
  v1::JobSpec spec = SmallWorld::spec(name, 1, devices);
  spec.set_engine("torch");
  return spec;
}
std::uint16_t block_of(const SmallWorld& world, const std::string& id) {
  return world.job(id).current()->parts.at(0).placed.hccl_port;
}

TEST(HcclPorts, TwoJobsOnOneHostHaveDifferentOnes) {
  SmallWorld world;
  world.limits.port_first = 20'000;
  world.limits.port_last = 20'099;
  join(world, "n1", ascend(4, "10.0.0.1"));
  join(world, "n2", ascend(1, "10.0.0.1"));
  join(world, "n3", ascend(1, "10.0.0.3"));
  world.submit("j1", on_ascend("a", 2));
  world.submit("j2", on_ascend("b", 1));
  v1::JobSpec same_host = on_ascend("c", 1), elsewhere = on_ascend("d", 1);
  same_host.mutable_resources()->add_hosts("n2");
  elsewhere.mutable_resources()->add_hosts("n3");
  world.submit("j3", same_host);
  world.submit("j4", elsewhere);
  EXPECT_EQ(block_of(world, "j1"), 20'068);
  EXPECT_EQ(block_of(world, "j2"), 20'036);
  EXPECT_EQ(block_of(world, "j3"), 20'004) << "two agents, one host";
  EXPECT_EQ(block_of(world, "j4"), 20'068) << "another host";
  // Rank 0's own port is in none of these blocks.
  for (const char* id : {"j1", "j2", "j3", "j4"})
    EXPECT_LT(world.job(id).current()->master_port, 20'004) << id;
  const PlaceResult fifth = place_spec(world, on_ascend("e", 1));
  EXPECT_THAT(fifth.nodes, IsEmpty());
  EXPECT_EQ(fifth.why,
            "'n1' has no 32 ports of 20000-20099 in a row free for HCCL, because other attempts "
            "hold them; they come free as those end, and a wider --port-range of the controller "
            "has more");
  v1::JobSpec own = on_ascend("f", 1);
  (*own.mutable_runtime()->mutable_env())["HCCL_IF_BASE_PORT"] = "50000";
  ASSERT_EQ(place_spec(world, own).nodes.size(), 1U);
  EXPECT_EQ(place_spec(world, own).nodes[0].hccl_port, 0);
}

// Regression: if every block had been used lately, the topmost one was chosen again and again,
// although another program used a port of it.
TEST(HcclPorts, ALostStartsOnesComeLastAgain) {
  SmallWorld world;
  world.limits.port_first = 20'000;
  world.limits.port_last = 20'099;
  join(world, "n1", ascend(1, "10.0.0.1"));
  world.submit("j1", on_ascend("a", 1));
  std::vector<std::uint16_t> blocks;
  for (std::uint32_t number = 1; number <= 7; ++number) {
    blocks.push_back(block_of(world, "j1"));
    v1::Fact lost = world.fact("j1", number);
    lost.mutable_start_failed()->set_why(v1::START_FAILURE_PORT);
    world.report("n1", std::move(lost));
    world.swept("j1", number, "n1", v1::SWEPT_WHY_NEVER_STARTED);
  }
  EXPECT_THAT(blocks, ElementsAre(20'068, 20'036, 20'004, 20'068, 20'036, 20'004, 20'068));
}

// A rank computes its peers' ports from its own base.
TEST(HcclPorts, AreTheSameOnEveryHostOfAJob) {
  SmallWorld world;
  world.limits.port_first = 20'000;
  world.limits.port_last = 20'099;
  for (const char* name : {"n1", "n2"})
    join(world, name, ascend(4, std::string("10.0.0.") + name[1]));
  v1::JobSpec first = on_ascend("a", 1);
  first.mutable_resources()->add_hosts("n2");
  world.submit("j1", first);
  v1::JobSpec both = on_ascend("b", 1);
  both.mutable_resources()->set_nodes(2);
  world.submit("j2", both);
  EXPECT_EQ(block_of(world, "j1"), 20'068);
  for (const NodePart& part : world.job("j2").current()->parts)
    EXPECT_EQ(part.placed.hccl_port, 20'036) << part.placed.node.str() << ": free on both";
  v1::JobSpec third = both;
  third.set_name("c");
  world.submit("j3", third);
  third.set_name("d");
  const PlaceResult none = place_spec(world, third);
  EXPECT_EQ(none.why,
            "'n1', 'n2' have no 32 ports of 20000-20099 in a row free for HCCL, the same on every "
            "host, because other attempts hold them; they come free as those "
            "end, and a wider --port-range of the controller has more");
}

TEST(Addresses, OfThisHostAloneDoForAGangOnThisHostAlone) {
  SmallWorld world;
  join(world, "n1", ascend(4, "127.0.0.1"));
  join(world, "n2", ascend(4, "10.0.0.2"));
  v1::JobSpec both = SmallWorld::spec("a", 2, 1);
  EXPECT_THAT(place_spec(world, both).why,
              HasSubstr("'n1' has the training address 127.0.0.1, which other nodes cannot reach: "
                        "start its agent with --address"));
  EXPECT_EQ(place_spec(world, SmallWorld::spec("a", 1, 1)).nodes.size(), 1U)
      << "one node reaches itself";
  join(world, "n3", ascend(4, "10.0.0.3"));
  ASSERT_EQ(place_spec(world, both).nodes.size(), 2U);
  EXPECT_EQ(place_spec(world, both).nodes[0].node, NodeName("n2"));
  SmallWorld here;
  for (const char* name : {"n1", "n2"}) join(here, name, ascend(4, "127.0.0.1"));
  EXPECT_EQ(place_spec(here, both).nodes.size(), 2U) << "a private cluster";
}

TEST(HcclPorts, PlacementsOfOneProposalAndOneGangShareNone) {
  SmallWorld world;
  world.submit("j1", on_ascend("a", 1));
  world.submit("j2", on_ascend("b", 1));
  v1::JobSpec gang = on_ascend("c", 1);
  gang.mutable_resources()->set_nodes(2);
  world.submit("j3", gang);
  for (const char* name : {"n1", "n2"})
    world.put(RegisterNode{.node = NodeName(name),
                           .instance = InstanceId("i1"),
                           .boot_id = BootId("b1"),
                           .inventory = ascend(4, "10.0.0.1")});
  for (const char* name : {"n1", "n2"})
    observe(
        world.presence, world.ledger,
        Connected{
            .node = NodeName(name), .connection = ConnectionId(1), .instance = InstanceId("i1")},
        world.now);
  world.settle();
  std::set<std::uint16_t> blocks;
  for (const char* id : {"j1", "j2", "j3"}) {
    ASSERT_NE(world.job(id).current(), nullptr) << id;
    for (const NodePart& part : world.job(id).current()->parts)
      blocks.insert(part.placed.hccl_port);
  }
  EXPECT_EQ(blocks.size(), 4U);
  EXPECT_FALSE(blocks.contains(0));
}

TEST(HcclPorts, AnAttemptThatIsJustOverKeepsItsOwnForAWhile) {
  SmallWorld world;
  join(world, "n1", ascend(2, "10.0.0.1"));
  world.submit("j1", on_ascend("a", 1));
  const std::uint16_t first = block_of(world, "j1");
  world.exited("j1", 1, "n1", 0, 0);
  world.swept("j1", 1, "n1");
  world.logs("j1", 1, "n1");
  ASSERT_EQ(world.job("j1").phase, JobPhase::Succeeded);
  world.submit("j2", on_ascend("b", 1));
  EXPECT_EQ(block_of(world, "j2"), first - 32);
  // If no other block is left, it is used again.
  world.limits.port_first = 29'905;  // for rank 0, the other job, and this one
  world.limits.port_last = 29'999;
  EXPECT_EQ(place_spec(world, on_ascend("c", 1)).nodes.at(0).hccl_port, first);
}

// Regression: the only block of a small range contained the port that was next for rank 0, and the
// job waited although the node was idle.
TEST(HcclPorts, ComeBeforeRankZerosOwn) {
  SmallWorld world;
  join(world, "n1", ascend(2, "10.0.0.1"));
  world.limits.port_first = 20'000;
  world.limits.port_last = 20'039;
  world.ledger.port_cursor["10.0.0.1"] = 20'015;
  const PlaceResult placed = place_spec(world, on_ascend("a", 1));
  ASSERT_EQ(placed.nodes.size(), 1U) << placed.why;
  EXPECT_EQ(placed.nodes[0].hccl_port, 20'008);
  EXPECT_EQ(placed.master_port, 20'000);
  v1::JobSpec fixed = on_ascend("b", 1);
  fixed.mutable_network()->set_master_port(20'007);
  EXPECT_EQ(place_spec(world, fixed).master_port, 20'007);
  EXPECT_FALSE(never_fits(world.ledger, world.presence, {.spec = fixed}, world.now, world.limits));
  v1::JobSpec inside = fixed;
  inside.mutable_network()->set_master_port(20'008);
  const PlaceResult refused = place_spec(world, inside);
  EXPECT_TRUE(refused.never);
  EXPECT_THAT(
      refused.why,
      HasSubstr("--port-range 20000-20039 has 40, with network.master_port 20008 among them"));
  EXPECT_TRUE(never_fits(world.ledger, world.presence, {.spec = inside}, world.now, world.limits));
  EXPECT_NE(requirements_of(fixed), requirements_of(inside))
      << "else the answer for one would stand for both in the queue";
  world.limits.port_last = 20'071;
  EXPECT_EQ(place_spec(world, inside).nodes.at(0).hccl_port, 20'040) << "the other block";
}

TEST(HcclPorts, NobodyElseGetsAny) {
  SmallWorld world;
  join(world, "n1", ascend(2, "10.0.0.1"));
  v1::JobSpec plain = SmallWorld::spec("a", 1, 1);
  plain.set_engine("command");
  EXPECT_EQ(place_spec(world, plain).nodes.at(0).hccl_port, 0);
  world.limits.port_last = static_cast<std::uint16_t>(world.limits.port_first + 30);
  EXPECT_EQ(place_spec(world, on_ascend("a", 1)).nodes.at(0).hccl_port, 0)
      << "a range that has no such ports: HCCL's own";
  world.node("n2", 1);
  v1::JobSpec cpu = on_ascend("a", 1);
  cpu.mutable_resources()->set_type("cpu");
  EXPECT_EQ(place_spec(world, cpu).nodes.at(0).hccl_port, 0);
}

// --- the rank table ------------------------------------------------------------------------------

TEST(Table, ItsHashIsPinnedWithThePlacement) {
  SmallWorld world;
  join(world, "n1", ascend(2, "10.0.0.1"));
  join(world, "n2", ascend(2, "10.0.0.2"));
  world.submit("j1", mindformers("a", 2, 2));
  const AttemptRecord& attempt = *world.job("j1").current();
  engine::LaunchRequest request{.spec = &world.job("j1").spec, .attempt = 1};
  for (const NodePart& part : attempt.parts) request.nodes.push_back(part.placed);
  const auto table = engine::plan_table(request);
  ASSERT_TRUE(table && *table != nullptr);
  EXPECT_EQ(attempt.table_sha256, (*table)->hash);
  EXPECT_EQ(attempt.table_sha256, sha256_hex((*table)->bytes));
  EXPECT_THAT((*table)->bytes, HasSubstr("\"device_id\": \"6\""))
      << "of the host, not of the container";
}

TEST(Table, WhatNeedsNoneHasNoHash) {
  SmallWorld world;
  join(world, "n1", ascend(4, "10.0.0.1"));
  world.submit("j1", mindformers("a", 1, 1));
  world.submit("j2", on_ascend("b", 2));
  EXPECT_EQ(world.job("j1").current()->table_sha256, "");
  EXPECT_EQ(world.job("j2").current()->table_sha256, "");
}

// A card without an address is no reason to wait: the launch reports what is wrong, and the job
// ends. Cards that report the same address are an error of the cluster. The start reports it with a
// sentence, because no placement would help.
TEST(Table, NodesThatNoTableCanBeMadeOfArePlacedAllTheSame) {
  SmallWorld world;
  for (const char* address : {"10.0.0.1", "10.0.0.2"}) {
    v1::Inventory inventory = ascend(2, address);
    for (v1::Device& device : *inventory.mutable_devices())
      device.set_addresses(0, "192.168.9." + std::to_string(device.id()));
    join(world, std::string("n") + address[7], inventory);
  }
  world.submit("j1", mindformers("a", 2, 2));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  EXPECT_EQ(world.job("j1").current()->table_sha256, "");
}

// --- setup ---------------------------------------------------------------------------------------

// Regression: it counted as a node that does not start.
TEST(Setup, TheStartMayTakeAsMuchLonger) {
  SmallWorld world;
  join(world, "n1", ascend(1, "10.0.0.1"));
  v1::JobSpec spec = SmallWorld::spec("a", 1, 1);
  spec.mutable_runtime()->add_setup("pip install x");
  spec.mutable_runtime()->mutable_setup_timeout()->set_seconds(600);
  world.submit("j1", spec);
  const auto later = [&](Duration time) {
    world.pass(time);
    v1::Heartbeat heartbeat;
    world.see(HeartbeatHeard{
        .node = NodeName("n1"), .connection = ConnectionId(1), .heartbeat = heartbeat});
    world.see(HeartbeatAcked{.node = NodeName("n1"), .connection = ConnectionId(1)});
  };
  later(world.limits.start_timeout + std::chrono::seconds(599));
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
  later(std::chrono::seconds(2));
  EXPECT_EQ(world.job("j1").current()->broke_cause, "node 'n1' did not start its part within 11m");
}

TEST(Setup, AnImageMayTakeAsMuchAgain) {
  v1::JobSpec spec = SmallWorld::spec("a", 1, 1);
  EXPECT_EQ(setup_time(spec), Duration::zero());
  spec.mutable_runtime()->set_image("img:1");
  EXPECT_EQ(setup_time(spec), Duration(std::chrono::minutes(30)));
  spec.mutable_runtime()->add_setup("true");
  spec.mutable_runtime()->mutable_setup_timeout()->set_seconds(60);
  EXPECT_EQ(setup_time(spec), Duration(std::chrono::minutes(2)));
}

}  // namespace
}  // namespace muster::core
