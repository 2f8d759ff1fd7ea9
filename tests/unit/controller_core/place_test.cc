#include <gmock/gmock.h>

#include "controller/core/placement/placing.h"
#include "tests/unit/controller_core/small_world.h"

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PlaceResult place_spec(const SmallWorld& world, const v1::JobSpec& spec) {
  JobRecord job;
  job.id = JobId("probe");
  job.spec = spec;
  return place(world.ledger, world.presence, job, world.now, world.limits);
}

std::vector<std::string> names(const std::vector<PlacedNode>& nodes) {
  std::vector<std::string> found;
  for (const PlacedNode& node : nodes) found.push_back(node.node.str());
  return found;
}

TEST(Place, GangIsAllOrNothingAndRanksAreDense) {
  SmallWorld world;
  world.node("n0", 2);
  world.node("n1", 4);
  const PlaceResult placed = place_spec(world, SmallWorld::spec("a", 2, 2));
  ASSERT_EQ(placed.nodes.size(), 2U);
  EXPECT_EQ(placed.nodes[0].first_rank, RankNo(0));
  EXPECT_EQ(placed.nodes[1].first_rank, RankNo(2));
  EXPECT_EQ(placed.nodes[1].rank_count, 2U);
  EXPECT_THAT(placed.nodes[1].devices, ElementsAre(0U, 1U));
  EXPECT_EQ(placed.nodes[0].boot_id, BootId("b1"));
  EXPECT_EQ(placed.nodes[0].instance, InstanceId("i1"));
  EXPECT_TRUE(place_spec(world, SmallWorld::spec("b", 3, 1)).nodes.empty());
}

TEST(Place, NeverMeansNotEvenIfIdle) {
  SmallWorld world;
  EXPECT_FALSE(place_spec(world, SmallWorld::spec("a", 1, 1)).never);
  world.node("n0", 2);
  EXPECT_TRUE(place_spec(world, SmallWorld::spec("a", 1, 3)).never);
  world.submit("j1", SmallWorld::spec("holder", 1, 2));
  const PlaceResult busy = place_spec(world, SmallWorld::spec("a", 1, 2));
  EXPECT_FALSE(busy.never);
  EXPECT_THAT(busy.why, HasSubstr("'n0' has 0 of 2 devices free ('holder' attempt 1)"));
}

TEST(Place, SilentAwayAndDeadNodesAreNotUsed) {
  SmallWorld world;
  world.node("n0", 1);
  world.node("n1", 1);
  world.see(Disconnected{.node = NodeName("n0"), .connection = ConnectionId(1)});
  EXPECT_THAT(names(place_spec(world, SmallWorld::spec("a", 1, 1)).nodes), ElementsAre("n1"));
  world.pass(std::chrono::seconds(10));
  EXPECT_THAT(place_spec(world, SmallWorld::spec("a", 1, 1)).why,
              HasSubstr("'n1' is silent for 10s"));
  world.put(DeclareNodeDead{.node = NodeName("n1"), .reason = "gone"});
  EXPECT_THAT(place_spec(world, SmallWorld::spec("a", 2, 1)).why,
              HasSubstr("'n1' is declared dead"));
}

TEST(Place, AcceleratorsAreMeantByAuto) {
  SmallWorld world;
  v1::Inventory mixed = SmallWorld::inventory(2, "n0", "ascend");
  for (std::uint32_t id = 8; id < 16; ++id) {
    mixed.add_devices()->set_id(id);
    mixed.mutable_devices(mixed.devices_size() - 1)->set_type("cpu");
  }
  world.put(RegisterNode{.node = NodeName("n0"),
                         .instance = InstanceId("i1"),
                         .boot_id = BootId("b1"),
                         .inventory = mixed});
  world.see(Connected{
      .node = NodeName("n0"), .connection = ConnectionId(9), .instance = InstanceId("i1")});
  EXPECT_THAT(place_spec(world, SmallWorld::spec("a", 1, 2)).nodes.at(0).devices,
              ElementsAre(0U, 1U));
  EXPECT_THAT(place_spec(world, SmallWorld::spec("a", 1, 4)).nodes.at(0).devices,
              ElementsAre(8U, 9U, 10U, 11U));
  v1::JobSpec cpu = SmallWorld::spec("a", 1, 2);
  cpu.mutable_resources()->set_type("cpu");
  EXPECT_THAT(place_spec(world, cpu).nodes.at(0).devices, ElementsAre(8U, 9U));
}

TEST(Place, ComesBackInPlaceAndFillsTheGap) {
  SmallWorld world;
  for (const char* name : {"n0", "n1", "n2", "n3"}) world.node(name, 1);
  v1::JobSpec spec = SmallWorld::spec("a", 3, 1);
  world.submit("j1", spec);
  ASSERT_THAT(names(place_spec(world, SmallWorld::spec("b", 1, 1)).nodes), ElementsAre("n3"));
  // n1 reboots under its rank and is wiped. The others keep their parts when it is back, and n3
  // replaces it while it is away.
  world.exited("j1", 1, "n0", 0, 1);
  for (const char* name : {"n0", "n1", "n2"})
    world.see(Disconnected{.node = NodeName(name), .connection = ConnectionId(2)});
  world.swept("j1", 1, "n0");
  world.swept("j1", 1, "n2");
  world.swept("j1", 1, "n1");
  const AttemptRecord& second = *world.job("j1").attempt(AttemptNo(2));
  std::vector<std::string> nodes;
  for (const NodePart& part : second.parts) nodes.push_back(part.placed.node.str());
  EXPECT_THAT(nodes, ElementsAre("n0", "n3", "n2"));
}

TEST(Place, TwoPlacementsOfOneProposalShareNothing) {
  SmallWorld world;
  world.submit("j1", SmallWorld::spec("a", 1, 1));
  world.submit("j2", SmallWorld::spec("b", 1, 1));
  world.submit("j3", SmallWorld::spec("c", 1, 1));
  world.put(RegisterNode{.node = NodeName("n0"),
                         .instance = InstanceId("i1"),
                         .boot_id = BootId("b1"),
                         .inventory = SmallWorld::inventory(2, "n0")});
  observe(world.presence, world.ledger,
          Connected{
              .node = NodeName("n0"), .connection = ConnectionId(1), .instance = InstanceId("i1")},
          world.now);
  const Proposal proposal = propose(world.ledger, world.presence, world.now, world.limits);
  ASSERT_EQ(proposal.inputs.size(), 2U);
  const auto& first = std::get<ProposePlacement>(proposal.inputs[0]);
  const auto& second = std::get<ProposePlacement>(proposal.inputs[1]);
  EXPECT_EQ(first.job, JobId("j1"));
  EXPECT_NE(first.nodes[0].devices, second.nodes[0].devices);
  EXPECT_NE(first.master_port, second.master_port);
}

// An outdated proposal must not be trusted: the device may be reserved for another job by now.
TEST(Place, DecideChecksAgain) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("a", 1, 1));
  world.submit("j2", SmallWorld::spec("b", 1, 1));
  ProposePlacement stolen{.job = JobId("j2"),
                          .attempt = AttemptNo(1),
                          .nodes = {world.job("j1").current()->parts[0].placed},
                          .master_port = 20'500};
  EXPECT_TRUE(decide(world.ledger, world.presence, stolen, world.now, world.limits).events.empty());
  world.node("n1", 1);
  EXPECT_EQ(world.job("j2").phase, JobPhase::Launching);
}

v1::PresentAttempt present(const std::string& job, std::uint32_t attempt, bool swept) {
  v1::PresentAttempt present;
  present.set_job_id(job);
  present.set_attempt(attempt);
  present.set_swept(swept);
  return present;
}

// An older journal was restored: the node runs what the journal does not name, on devices that the
// ledger believes to be free.
TEST(Place, ANodeWithARunThatTheLedgerDoesNotKnowGetsNothing) {
  SmallWorld world;
  world.node("n0", 2);
  const PlaceResult before = place_spec(world, SmallWorld::spec("a", 1, 1));
  world.node("n0", 2, "b1", "i1", {present("gone", 3, false)});
  EXPECT_THAT(place_spec(world, SmallWorld::spec("a", 1, 1)).why,
              HasSubstr("'n0' may still run attempt 3 of job 'gone'"));
  world.submit("j1", SmallWorld::spec("a", 1, 1));
  const ProposePlacement stolen{.job = JobId("j1"),
                                .attempt = AttemptNo(1),
                                .nodes = before.nodes,
                                .master_port = before.master_port};
  EXPECT_TRUE(decide(world.ledger, world.presence, stolen, world.now, world.limits).events.empty());
  world.node("n0", 2, "b1", "i1", {present("gone", 3, true)});
  EXPECT_EQ(world.job("j1").phase, JobPhase::Launching);
}

// One node has a part of an attempt that the ledger knows. Another node reports the same attempt,
// which was not placed on it.
TEST(Place, ARunIsKnownOnTheNodesOfItsAttemptOnly) {
  SmallWorld world;
  world.node("n0", 1);
  world.submit("j1", SmallWorld::spec("a", 1, 1));
  world.node("n1", 1, "b1", "i1", {present("j1", 1, false)});
  world.node("n0", 1, "b1", "i1", {present("j1", 1, false)});
  EXPECT_TRUE(world.presence.nodes.at(NodeName("n0")).unknown_runs.empty());
  EXPECT_EQ(world.presence.nodes.at(NodeName("n1")).unknown_runs.size(), 1U);
}

// Restart in place, but another job on the first node got the fixed port in the meantime: the nodes
// exchange their ranks.
TEST(Place, AFixedPortThatIsTakenOnTheFirstNodeMovesRankZero) {
  SmallWorld world;
  for (const char* name : {"n0", "n1"}) world.node(name, 2);
  v1::JobSpec spec = SmallWorld::spec("a", 2, 1);
  spec.mutable_network()->set_master_port(29'500);
  JobRecord job;
  job.id = JobId("probe");
  job.spec = spec;
  const PlaceResult first = place(world.ledger, world.presence, job, world.now, world.limits);
  ASSERT_THAT(names(first.nodes), ElementsAre("n0", "n1"));
  job.attempts.emplace_back().number = AttemptNo(1);
  for (const PlacedNode& placed : first.nodes)
    job.attempts.back().parts.push_back({.placed = placed});
  EXPECT_THAT(names(place(world.ledger, world.presence, job, world.now, world.limits).nodes),
              ElementsAre("n0", "n1"));
  world.ledger.indexes.ports_reserved[{"n0", 29'500}] = {JobId("other"), AttemptNo(1)};
  EXPECT_THAT(names(place(world.ledger, world.presence, job, world.now, world.limits).nodes),
              ElementsAre("n1", "n0"));
  // Also to a node that could not start the last attempt.
  job.attempts.back().parts.back().start_failed =
      NodeStartFailed{.node = NodeName("n1"), .why = StartFailure::Disk};
  job.attempts.back().ended_at = world.now.wall - std::chrono::hours(1);
  EXPECT_THAT(names(place(world.ledger, world.presence, job, world.now, world.limits).nodes),
              ElementsAre("n1", "n0"));
}

}  // namespace
}  // namespace muster::core
