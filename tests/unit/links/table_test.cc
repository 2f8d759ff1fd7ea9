// The rank table of a launch: made once for an attempt, equal to the pinned one, and the same bytes
// when it is sent again.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>

#include "common/digest/sha256.h"
#include "controller/launch/launch.h"
#include "tests/unit/links/hub_fixture.h"

namespace muster::controller {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::HasSubstr;

v1::Inventory inventory(const std::string& address, std::uint32_t devices) {
  v1::Inventory inventory;
  inventory.set_address(address);
  for (std::uint32_t id = 0; id < devices; ++id) {
    v1::Device& device = *inventory.add_devices();
    device.set_id(id);
    device.set_type("ascend910b");
    device.set_physical_id(id + 4);
    device.add_addresses("192.168." + address.substr(7) + "." + std::to_string(id));
  }
  return inventory;
}

v1::JobSpec mindformers(std::uint32_t nodes, std::uint32_t devices) {
  v1::JobSpec spec;
  spec.set_name("one");
  spec.set_engine("mindformers");
  spec.mutable_code()->set_at("/srv");
  spec.mutable_runtime()->set_user("submitter");
  spec.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
  spec.mutable_launch()->set_script("run_mindformer.py");
  spec.mutable_launch()->set_config("a.yaml");
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_RANKTABLE);
  spec.mutable_resources()->set_nodes(nodes);
  spec.mutable_resources()->set_devices(devices);
  spec.mutable_resources()->set_type("ascend");
  spec.mutable_recovery()->mutable_orphan_grace()->set_seconds(1'800);
  return spec;
}

class TableTest : public testing::Test {
 protected:
  static core::PlacedNode placed(const std::string& name, std::uint32_t first) {
    return {.node = NodeName(name),
            .boot_id = BootId("b"),
            .instance = InstanceId("i"),
            .address = "10.0.0." + name.substr(1),
            .devices = {0, 1},
            .first_rank = RankNo(first),
            .rank_count = 2,
            .device_type = "ascend910b",
            .physical_ids = {4, 5},
            .device_ips = {"192.168." + name.substr(1) + ".0", "192.168." + name.substr(1) + ".1"},
            .hccl_port = 29'968};
  }
  core::JobRecord job(std::string sha256 = {}) {
    core::JobRecord job;
    job.id = JobId("j");
    job.spec = mindformers(2, 2);
    core::AttemptRecord& attempt = job.attempts.emplace_back();
    attempt.number = AttemptNo(1);
    attempt.master_port = 20'000;
    attempt.table_sha256 = std::move(sha256);
    for (const auto& [name, first] : {std::pair{"n1", 0U}, {"n2", 2U}}) {
      attempt.part_index[NodeName(name)] = attempt.parts.size();
      attempt.parts.push_back({.placed = placed(name, first)});
    }
    return job;
  }
};

TEST_F(TableTest, IsMadeOnceForAllParts) {
  const core::JobRecord one = job();
  engine::LaunchRequest request = launch_request(one, one.attempts[0], "/out");
  ASSERT_EQ(request.table, nullptr);
  const auto first = part_launch(one, one.attempts[0], request, 0);
  ASSERT_TRUE(first) << first.error().message;
  const auto kept = request.table;
  ASSERT_NE(kept, nullptr);
  const auto second = part_launch(one, one.attempts[0], request, 1);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(request.table, kept);
  ASSERT_EQ(second->files_size(), 1);
  EXPECT_EQ(second->files(0).content(), first->files(0).content());
  EXPECT_THAT(second->files(0).content(), HasSubstr("\"device_id\": \"5\""));
  EXPECT_EQ(second->ranks(1).env().at("DEVICE_ID"), "1");
}

TEST_F(TableTest, OnlyThePinnedOneIsSent) {
  core::JobRecord one = job();
  engine::LaunchRequest request = launch_request(one, one.attempts[0], "/out");
  const auto launch = part_launch(one, one.attempts[0], request, 0);
  ASSERT_TRUE(launch);
  one = job(launch->files(0).sha256());
  request = launch_request(one, one.attempts[0], "/out");
  EXPECT_TRUE(part_launch(one, one.attempts[0], request, 0));
  one = job(std::string(64, '0'));
  request = launch_request(one, one.attempts[0], "/out");
  const auto refused = part_launch(one, one.attempts[0], request, 0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("its rank table was pinned with sha256 0000"));
  EXPECT_EQ(request.table, nullptr);
}

// The agent checks whether they are free before anything starts.
TEST_F(TableTest, ThePortsOfHcclAreTheNodesToProbe) {
  core::JobRecord one = job();
  engine::LaunchRequest request = launch_request(one, one.attempts[0], "/out");
  const auto first = part_launch(one, one.attempts[0], request, 0),
             second = part_launch(one, one.attempts[0], request, 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->ports_size(), 33);
  EXPECT_EQ(first->ports(0), 20'000U);
  EXPECT_EQ(second->ports_size(), 32);
  EXPECT_EQ(second->ports(31), 29'999U);
  EXPECT_EQ(second->env().at("HCCL_IF_BASE_PORT"), "29968");
  (*one.spec.mutable_runtime()->mutable_env())["HCCL_IF_BASE_PORT"] = "50000";
  const auto own = part_launch(one, one.attempts[0], request, 1);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->ports_size(), 0) << "the user's own are the user's to keep free";
}

v1::Hello hello(const std::string& node, const std::string& address) {
  v1::Hello hello = HandAgent::hello(0, node);
  *hello.mutable_inventory() = inventory(address, 2);
  return hello;
}

class TableHubTest : public HubTest {};

// A restarted controller sends an order again to an agent that does not have it: if its table were
// different, two nodes would disagree.
TEST_F(TableHubTest, SentAgainAfterARestartItIsTheSameBytes) {
  std::map<std::string, v1::Order> before;
  {
    HandAgent first(address_), second(address_);
    ASSERT_TRUE(first.connect(hello("n1", "10.0.0.1")));
    ASSERT_TRUE(second.connect(hello("n2", "10.0.0.2")));
    submit(mindformers(2, 2));
    for (const auto& [name, agent] : {std::pair{"n1", &first}, {"n2", &second}}) {
      auto order = agent->order("one", v1::Order::kRun);
      ASSERT_TRUE(order) << name;
      before[name] = *std::move(order);
    }
  }
  const std::string& table = before["n1"].run().files(0).content();
  EXPECT_EQ(table, before["n2"].run().files(0).content());
  const std::string pinned = seen(
      [](const View& view) { return view.ledger.jobs.at(JobId("one")).current()->table_sha256; });
  EXPECT_EQ(pinned, sha256_hex(table));
  EXPECT_EQ(before["n1"].run().files(0).sha256(), pinned);

  ASSERT_NO_THROW(restart());
  EXPECT_EQ(seen([](const View& view) {
              return view.ledger.jobs.at(JobId("one")).current()->table_sha256;
            }),
            pinned);
  HandAgent second(address_);
  v1::Hello changed = hello("n2", "10.0.0.2");
  // what the agent reports now does not change what was placed
  changed.mutable_inventory()->mutable_devices(0)->set_addresses(0, "192.168.77.7");
  ASSERT_TRUE(second.connect(changed));
  const auto again = second.order("one", v1::Order::kRun);
  ASSERT_TRUE(again);
  EXPECT_TRUE(MessageDifferencer::Equals(*again, before["n2"])) << again->ShortDebugString();
}

}  // namespace
}  // namespace muster::controller
