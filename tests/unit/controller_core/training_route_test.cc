// Where a job's ranks meet when its spec names no interface: rank 0's address, and every other
// node's interface and address, by its routes.
#include "controller/core/placement/training_route.h"

#include <gmock/gmock.h>

#include "controller/core/placement/placing.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Route {
  std::string destination, interface, source = "";
  std::uint32_t metric = 0;
  bool connected = false;
};

struct Net {
  std::string address;                                                       // training address
  std::vector<std::pair<std::string, std::vector<std::string>>> interfaces;  // name, addresses
  std::vector<Route> routes;
  bool given = false, cut = false;
};

v1::Inventory inventory(const Net& net) {
  v1::Inventory inventory = SmallWorld::inventory(2, net.address);
  inventory.set_address_given(net.given);
  inventory.set_routes_cut(net.cut);
  inventory.clear_interfaces();
  for (const auto& [name, addresses] : net.interfaces) {
    v1::NetworkInterface& one = *inventory.add_interfaces();
    one.set_name(name);
    for (const std::string& address : addresses) one.add_addresses(address);
  }
  for (const Route& route : net.routes) {
    v1::NetworkRoute& one = *inventory.add_routes();
    one.set_destination(route.destination);
    one.set_interface(route.interface);
    one.set_source(route.source);
    one.set_metric(route.metric);
    one.set_connected(route.connected);
  }
  return inventory;
}

void join(SmallWorld& world, const std::string& name, const Net& net) {
  const Decision decision = world.put(RegisterNode{.node = NodeName(name),
                                                   .instance = InstanceId("i1"),
                                                   .boot_id = BootId("b1"),
                                                   .inventory = inventory(net),
                                                   .version = "0.3.0"});
  ASSERT_FALSE(decision.refusal);
  world.see(Connected{.node = NodeName(name),
                      .connection = ConnectionId(++world.connections),
                      .instance = InstanceId("i1"),
                      .boot_id = BootId("b1")});
}

PlaceResult place_spec(const SmallWorld& world, const v1::JobSpec& spec) {
  JobRecord job;
  job.id = JobId("probe");
  job.spec = spec;
  return place(world.ledger, world.presence, job, world.now, world.limits);
}

PlaceResult place_on(const std::vector<Net>& nets, std::uint32_t nodes) {
  SmallWorld world;
  for (std::size_t at = 0; at < nets.size(); ++at) join(world, fmt::format("n{}", at), nets[at]);
  return place_spec(world, SmallWorld::spec("a", nodes, 1));
}

std::vector<std::string> ways(const PlaceResult& placed) {
  std::vector<std::string> ways;
  for (const PlacedNode& node : placed.nodes)
    ways.push_back(node.node.str() + " " + node.address + " " + node.interface);
  if (placed.nodes.empty()) ways.push_back(placed.why);
  return ways;
}

// A rack's node: control network 10.7.RACK.0/24 with the default route, storage 10.9.0.0/16.
Net rack(int rack, int host) {
  const std::string control = fmt::format("10.7.{}.{}", rack, host),
                    storage = fmt::format("10.9.{}.{}", rack, host);
  return {
      .address = control,
      .interfaces = {{"ctl", {control}}, {"sto", {storage}}},
      .routes = {
          {.destination = fmt::format("10.7.{}.0/24", rack),
           .interface = "ctl",
           .source = control,
           .connected = true},
          {.destination = "10.9.0.0/16", .interface = "sto", .source = storage, .connected = true},
          {.destination = "0.0.0.0/0", .interface = "ctl"}}};
}

// Two networks each, as in tests/integration/netns_test.py: over the control network, no node
// reaches the other.
Net apart(int host, const char* training = "train") {
  const std::string control = fmt::format("10.77.0.{}", 4 * host + 2),
                    own = fmt::format("10.78.0.{}", host + 1);
  return {
      .address = control,
      .interfaces = {{"ctl", {control}}, {training, {own}}},
      .routes = {
          {.destination = fmt::format("10.77.0.{}/30", 4 * host),
           .interface = "ctl",
           .source = control,
           .connected = true},
          {.destination = "10.78.0.0/24", .interface = training, .source = own, .connected = true},
          {.destination = "10.77.9.9/32", .interface = "ctl"}}};
}

TEST(TrainingRoute, OneNetworkIsAsItWas) {
  EXPECT_THAT(ways(place_on({rack(1, 1), rack(1, 2)}, 2)),
              ElementsAre("n0 10.7.1.1 ctl", "n1 10.7.1.2 ctl"));
  EXPECT_THAT(ways(place_on({rack(1, 1), rack(2, 2)}, 2)),
              ElementsAre("n0 10.7.1.1 ctl", "n1 10.7.2.2 ctl"))
      << "by its default route";
  EXPECT_THAT(ways(place_on({apart(0), apart(1)}, 1)), ElementsAre("n0 10.77.0.2 ctl"))
      << "one node asks nobody";
}

// The controller is reached through n1's other interface; the route to the master's address uses
// the first.
TEST(TrainingRoute, ANodeTakesTheInterfaceThatRoutesToTheFirstOnes) {
  Net second = rack(1, 2);
  second.address = "10.9.1.2";
  EXPECT_THAT(ways(place_on({rack(1, 1), second}, 2)),
              ElementsAre("n0 10.7.1.1 ctl", "n1 10.7.1.2 ctl"));
  second.given = true;
  EXPECT_THAT(ways(place_on({rack(1, 1), second}, 2)),
              ElementsAre("n0 10.7.1.1 ctl", "n1 10.9.1.2 sto"))
      << "the operator's word";
  second.given = false;
  second.routes.clear();
  EXPECT_THAT(ways(place_on({rack(1, 1), second}, 2)),
              ElementsAre("n0 10.7.1.1 ctl", "n1 10.9.1.2 sto"))
      << "its agent cannot list its routes";
  SmallWorld world;
  join(world, "n0", rack(1, 1));
  join(world, "n1", rack(1, 2));
  v1::JobSpec named = SmallWorld::spec("a", 2, 1);
  named.mutable_network()->set_interface("sto");
  EXPECT_THAT(ways(place_spec(world, named)), ElementsAre("n0 10.9.1.1 sto", "n1 10.9.1.2 sto"));
}

TEST(TrainingRoute, TheLongestPrefixThenTheSmallestMetric) {
  const Net first{.address = "10.1.1.1",
                  .interfaces = {{"eth0", {"10.1.1.1"}}},
                  .routes = {{.destination = "0.0.0.0/0", .interface = "eth0"}},
                  .given = true};
  const auto second = [](std::vector<Route> routes) {
    return Net{.address = "10.2.0.5",
               .interfaces = {{"a", {"10.2.0.5", "10.2.0.6"}},
                              {"b", {"10.3.0.5"}},
                              {"c", {"10.1.9.9"}},
                              {"d", {"fd00::5"}},
                              {"0b", {"10.4.0.5"}}},
               .routes = std::move(routes)};
  };
  struct Row {
    const char* what;
    std::vector<Route> routes;
    const char* way;
  };
  for (const Row& row : {
           Row{"longest",
               {{"0.0.0.0/0", "a"}, {"10.1.0.0/16", "b"}, {"10.0.0.0/8", "c"}},
               "n1 10.3.0.5 b"},
           Row{"before the metric",
               {{"0.0.0.0/0", "a", "", 1}, {"10.1.0.0/16", "b", "", 900}},
               "n1 10.3.0.5 b"},
           Row{"metric",
               {{"0.0.0.0/0", "a", "", 200}, {"0.0.0.0/0", "b", "", 100}},
               "n1 10.3.0.5 b"},
           Row{"a tie is the first one's",
               {{"0.0.0.0/0", "a", "", 100}, {"0.0.0.0/0", "b", "", 100}},
               "n1 10.2.0.5 a"},
           Row{"a tie is the training address's",
               {{"0.0.0.0/0", "0b"}, {"0.0.0.0/0", "a"}},
               "n1 10.2.0.5 a"},
           Row{"a host's own",
               {{"10.1.1.0/24", "a"}, {"10.1.1.1/32", "c"}, {"10.1.1.2/32", "b"}},
               "n1 10.1.9.9 c"},
           Row{"its source", {{"10.1.1.0/24", "a", "10.2.0.6"}}, "n1 10.2.0.6 a"},
           Row{"a source of another interface",
               {{"10.1.1.0/24", "a", "10.3.0.5"}},
               "n1 10.3.0.5 b"},
           Row{"a source of none that is told",
               {{"10.1.1.0/24", "a", "10.66.0.1"}},
               "n1 10.66.0.1 "},
           Row{"no address there: as it was", {{"10.1.1.0/24", "unnumbered"}}, "n1 10.2.0.5 a"},
           Row{"the other family leads nowhere",
               {{"::/0", "d"}, {"0.0.0.0/0", "b"}},
               "n1 10.3.0.5 b"},
           Row{"what is no prefix counts for nothing",
               {{"10.1.1.0", "a"}, {"10.1.1.0/33", "a"}, {"x/8", "a"}, {"0.0.0.0/0", "b"}},
               "n1 10.3.0.5 b"},
       }) {
    EXPECT_THAT(ways(place_on({first, second(row.routes)}, 2)),
                ElementsAre("n0 10.1.1.1 eth0", row.way))
        << row.what;
  }
}

// In an overlay network, a rule chooses the table with its routes; or a host has more routes than
// an agent reports.
TEST(TrainingRoute, WhereNotAllRoutesAreReportedAGatewayIsNotBelieved) {
  const auto node = [](int host) {
    const std::string lan = fmt::format("192.168.{}.2", host),
                      own = fmt::format("100.64.0.{}", host);
    return Net{.address = own,
               .interfaces = {{"eth0", {lan}}, {"over0", {own}}},
               .routes = {{.destination = fmt::format("192.168.{}.0/24", host),
                           .interface = "eth0",
                           .source = lan,
                           .connected = true},
                          {.destination = "0.0.0.0/0", .interface = "eth0"}}};
  };
  std::vector<Net> nets = {node(1), node(2)};
  EXPECT_THAT(ways(place_on(nets, 2)), ElementsAre("n0 100.64.0.1 over0", "n1 192.168.2.2 eth0"));
  nets[1].cut = true;
  EXPECT_THAT(ways(place_on(nets, 2)), ElementsAre("n0 100.64.0.1 over0", "n1 100.64.0.2 over0"));
  Net second = rack(1, 2);
  second.address = "10.9.1.2";
  second.cut = true;
  EXPECT_THAT(ways(place_on({rack(1, 1), second}, 2)),
              ElementsAre("n0 10.7.1.1 ctl", "n1 10.7.1.2 ctl"))
      << "an own network is";
}

TEST(TrainingRoute, OfIpv6TheAddressOfThatNetwork) {
  const auto node = [](const std::string& host) {
    return Net{
        .address = "fd00:1::" + host,
        .interfaces = {{"eth0", {"10.0.0." + host, "2001:db8::" + host, "fd00:1::" + host}}},
        .routes = {
            {.destination = "fd00:1::/64", .interface = "eth0", .metric = 256, .connected = true},
            {.destination = "::/0", .interface = "eth0", .metric = 1024},
            {.destination = "10.0.0.0/24", .interface = "eth0", .connected = true}}};
  };
  EXPECT_THAT(ways(place_on({node("1"), node("2")}, 2)),
              ElementsAre("n0 fd00:1::1 eth0", "n1 fd00:1::2 eth0"));
  Net second = node("2");
  second.address = "10.0.0.2";
  EXPECT_THAT(ways(place_on({node("1"), second}, 2)),
              ElementsAre("n0 fd00:1::1 eth0", "n1 fd00:1::2 eth0"));
  second.routes.erase(second.routes.begin(), second.routes.begin() + 2);
  EXPECT_THAT(ways(place_on({node("1"), second}, 2)),
              ElementsAre("n0 10.0.0.1 eth0", "n1 10.0.0.2 eth0"))
      << "where only IPv4 is shared";
}

TEST(TrainingRoute, WhereNobodyGetsToTheFirstOnesAddressAnotherOfItsIsTaken) {
  EXPECT_THAT(ways(place_on({apart(0), apart(1)}, 2)),
              ElementsAre("n0 10.78.0.1 train", "n1 10.78.0.2 train"));
  EXPECT_THAT(ways(place_on({apart(0, "a"), apart(1, "z")}, 2)),
              ElementsAre("n0 10.78.0.1 a", "n1 10.78.0.2 z"));
  // All have a bridge for containers with one address, which reaches none of the others.
  std::vector<Net> bridged = {apart(0), apart(1), apart(2)};
  for (Net& net : bridged) {
    net.interfaces.insert(net.interfaces.begin(), {"br0", {"172.17.0.1"}});
    net.routes.push_back({.destination = "172.17.0.0/16",
                          .interface = "br0",
                          .source = "172.17.0.1",
                          .connected = true});
  }
  EXPECT_THAT(ways(place_on(bridged, 3)),
              ElementsAre("n0 10.78.0.1 train", "n1 10.78.0.2 train", "n2 10.78.0.3 train"));
  // Through a gateway, the node's own address is good enough, and nothing else is tried.
  std::vector<Net> routed = {apart(0), apart(1)};
  for (Net& net : routed) net.routes.push_back({.destination = "0.0.0.0/0", .interface = "ctl"});
  EXPECT_THAT(ways(place_on(routed, 2)), ElementsAre("n0 10.77.0.2 ctl", "n1 10.77.0.6 ctl"));
}

TEST(TrainingRoute, NodesThatDoNotMeetAreRefusedWithWhatHelps) {
  std::vector<Net> nets = {apart(0), apart(1)};
  nets[0].given = nets[1].given = true;
  EXPECT_THAT(ways(place_on(nets, 2)), ElementsAre("n0 10.77.0.2 ctl", "n1 10.77.0.6 ctl"))
      << "the operator's word";
  nets[1].given = false;
  const PlaceResult placed = place_on(nets, 2);
  EXPECT_TRUE(placed.never);
  EXPECT_EQ(placed.why,
            "need 2 nodes with 1 device; 1 of 2 nodes that could do meet: 'n1' has no route to "
            "10.77.0.2, the training address of 'n0'; the nodes of a job need a way to its first "
            "one's training address: name the network interface that they share with "
            "network.interface, or start their agents with --address");
  nets[1].cut = true;
  EXPECT_THAT(ways(place_on(nets, 2)), ElementsAre("n0 10.77.0.2 ctl", "n1 10.77.0.6 ctl"))
      << "the route may be one that is not told";
  SmallWorld world;
  for (const char* name : {"n0", "n1"}) {
    Net alone = apart(name[1] - '0');
    alone.routes.erase(alone.routes.begin() + 1);
    join(world, name, alone);
  }
  EXPECT_THAT(world
                  .put(SubmitJob{.job = JobId("j"),
                                 .request_id = {},
                                 .spec = SmallWorld::spec("a", 2, 1),
                                 .spec_hash = "h"})
                  .refusal->message,
              HasSubstr("'n1' has no route to 10.77.0.2"));
  EXPECT_FALSE(world
                   .put(SubmitJob{.job = JobId("k"),
                                  .request_id = {},
                                  .spec = SmallWorld::spec("b", 1, 1),
                                  .spec_hash = "h"})
                   .refusal);
}

// Two sites, and one node without neighbors: the first site has two nodes, the second three.
TEST(TrainingRoute, OfNetworksApartOneIsChosenThatIsLargeEnough) {
  const auto site = [](int number, int host) {
    const std::string own = fmt::format("10.{}.0.{}", number, host);
    return Net{.address = own,
               .interfaces = {{"eth0", {own}}},
               .routes = {{.destination = fmt::format("10.{}.0.0/16", number),
                           .interface = "eth0",
                           .source = own,
                           .connected = true}}};
  };
  SmallWorld world;
  const std::vector<Net> nets = {site(9, 1), site(1, 1), site(2, 1),
                                 site(1, 2), site(2, 2), site(2, 3)};
  for (std::size_t at = 0; at < nets.size(); ++at) join(world, fmt::format("n{}", at), nets[at]);
  const auto placed_on = [&](std::uint32_t nodes, const std::vector<std::string>& hosts = {}) {
    v1::JobSpec spec = SmallWorld::spec("a", nodes, 1);
    for (const std::string& host : hosts) spec.mutable_resources()->add_hosts(host);
    return place_spec(world, spec);
  };
  EXPECT_THAT(ways(placed_on(2)), ElementsAre("n1 10.1.0.1 eth0", "n3 10.1.0.2 eth0"));
  EXPECT_THAT(ways(placed_on(3)),
              ElementsAre("n2 10.2.0.1 eth0", "n4 10.2.0.2 eth0", "n5 10.2.0.3 eth0"));
  EXPECT_TRUE(placed_on(4).never);
  EXPECT_THAT(placed_on(4).why, HasSubstr("1 of 6 nodes that could do meet: 'n1' has no route to "
                                          "10.9.0.1, the training address of 'n0', 'n2' has"));
  EXPECT_THAT(ways(placed_on(2, {"n0", "n5", "n4"})),
              ElementsAre("n5 10.2.0.3 eth0", "n4 10.2.0.2 eth0"))
      << "in the order of the spec";
  EXPECT_TRUE(placed_on(2, {"n0", "n5"}).never);
  // The larger site is busy: the job waits, and does not get half of it.
  world.submit("j1", SmallWorld::spec("busy", 3, 2));
  ASSERT_EQ(world.job("j1").current()->parts.at(0).placed.node, NodeName("n2"));
  const PlaceResult waits = placed_on(3);
  EXPECT_FALSE(waits.never);
  EXPECT_EQ(waits.why,
            "need 3 nodes with 1 device, 1 fit: 'n1' has no route to 10.9.0.1, the training "
            "address of 'n0', 'n2' has 0 of 2 devices free ('busy' attempt 1), 'n3' has no route "
            "to 10.9.0.1, the training address of 'n0', 'n4' has 0 of 2 devices free ('busy' "
            "attempt 1), 'n5' has 0 of 2 devices free ('busy' attempt 1); the nodes of a job need "
            "a way to its first one's training address: name the network interface that they share "
            "with network.interface, or start their agents with --address");
}

// More networks than are tried: the job is refused, or it would wait for ever at the head of the
// queue and delay all others.
TEST(TrainingRoute, OfVeryManyNetworksApartNoneIsFound) {
  SmallWorld world;
  for (int site = 0; site < 70; ++site) {
    const std::string own = fmt::format("10.{}.0.1", site);
    const Net alone{.address = own,
                    .interfaces = {{"eth0", {own}}},
                    .routes = {{.destination = fmt::format("10.{}.0.0/16", site),
                                .interface = "eth0",
                                .source = own,
                                .connected = true}}};
    join(world, fmt::format("n{:02}", site), alone);
  }
  const PlaceResult placed = place_spec(world, SmallWorld::spec("a", 2, 1));
  EXPECT_TRUE(placed.never);
  EXPECT_THAT(placed.why, HasSubstr("1 of 70 nodes that could do meet: 'n01' has no route to "
                                    "10.0.0.1, the training address of 'n00'"));
}

// Two agents on one host: the traffic to its own address never leaves the host.
TEST(TrainingRoute, AHostsOtherAgentHasItsAddress) {
  EXPECT_THAT(ways(place_on({rack(1, 1), rack(1, 1), rack(1, 2)}, 3)),
              ElementsAre("n0 10.7.1.1 ctl", "n1 10.7.1.1 ctl", "n2 10.7.1.2 ctl"));
  EXPECT_THAT(ways(place_on({apart(0), apart(0), apart(1)}, 3)),
              ElementsAre("n0 10.78.0.1 train", "n1 10.78.0.1 train", "n2 10.78.0.2 train"));
  Net other = rack(1, 1);
  other.address = "10.9.1.1";
  EXPECT_THAT(ways(place_on({rack(1, 1), other}, 2)),
              ElementsAre("n0 10.7.1.1 ctl", "n1 10.7.1.1 ctl"))
      << "known by its interfaces";
  const Net local{.address = "127.0.0.1",
                  .interfaces = {{"eth0", {"10.0.0.1"}}},
                  .routes = {{.destination = "0.0.0.0/0", .interface = "eth0"}}};
  EXPECT_THAT(ways(place_on({local, local}, 2)), ElementsAre("n0 127.0.0.1 ", "n1 127.0.0.1 "));
}

// A job that uses another address of rank 0's node keeps its port on that node, whichever address
// the next job uses there.
TEST(TrainingRoute, PortsAreTheHostsWhicheverAddressIsTaken) {
  SmallWorld world;
  for (int host = 0; host < 2; ++host) join(world, fmt::format("n{}", host), apart(host));
  world.submit("j1", SmallWorld::spec("a", 2, 1));
  world.submit("j2", SmallWorld::spec("b", 1, 1));
  const AttemptRecord &one = *world.job("j1").current(), &other = *world.job("j2").current();
  EXPECT_EQ(one.parts.at(0).placed.address, "10.78.0.1");
  EXPECT_EQ(other.parts.at(0).placed.address, "10.77.0.2");
  EXPECT_NE(one.master_port, other.master_port);
}

}  // namespace
}  // namespace muster::core
