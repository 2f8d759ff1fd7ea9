// What a node is sent is a function of the placement. Regression: the devices' type was read from
// the node's current inventory. An agent that came back and reported other devices changed what an
// earlier attempt was given, and for an archived job nobody could answer any more.
#include "controller/launch/launch.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "controller/core/core.h"

namespace muster::controller {
namespace {

class LaunchTest : public testing::Test {
 protected:
  LaunchTest() {
    spec_.set_name("one");
    spec_.set_engine("command");
    spec_.mutable_code()->set_at("/srv");
    spec_.mutable_runtime()->set_user("submitter");
    spec_.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
    spec_.mutable_launch()->add_run("true");
    spec_.mutable_resources()->set_type("auto");
  }
  void row(core::EventBody body) {
    core::apply(ledger_, JournalIndex(++index_),
                {.at = WallTime(std::chrono::seconds(index_)), .body = std::move(body)});
  }
  void registered(const std::vector<std::pair<std::uint32_t, std::string>>& devices) {
    v1::Inventory inventory;
    for (const auto& [id, type] : devices) {
      v1::Device& device = *inventory.add_devices();
      device.set_id(id);
      device.set_type(type);
    }
    row(core::NodeRegistered{.node = NodeName("a"),
                             .instance = InstanceId("i"),
                             .boot_id = BootId("b"),
                             .inventory = inventory});
  }
  void placed(const std::string& device_type) {
    row(core::JobSubmitted{.job = job_, .spec = spec_});
    row(core::AttemptPlaced{.job = job_,
                            .attempt = AttemptNo(1),
                            .nodes = {{.node = NodeName("a"),
                                       .boot_id = BootId("b"),
                                       .instance = InstanceId("i"),
                                       .address = "127.0.0.1",
                                       .devices = {0, 2},
                                       .first_rank = RankNo(0),
                                       .rank_count = 2,
                                       .device_type = device_type}},
                            .master_port = 20'000});
  }
  [[nodiscard]] v1::NodeLaunch launch() const {
    const core::JobRecord& job = ledger_.jobs.at(job_);
    engine::LaunchRequest request = launch_request(job, job.attempts.at(0), "/out");
    const auto made = part_launch(job, job.attempts.at(0), request, 0);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : v1::NodeLaunch();
  }

  core::Ledger ledger_;
  std::uint64_t index_ = 0;
  const JobId job_{"0000000000001"};
  v1::JobSpec spec_;
};

TEST_F(LaunchTest, IsWhatItWasWhenTheAttemptWasPlaced) {
  registered({{0, "nvidia"}, {2, "nvidia"}});
  placed("nvidia");
  const v1::NodeLaunch before = launch();
  EXPECT_EQ(before.env().at("CUDA_VISIBLE_DEVICES"), "0,2");
  EXPECT_EQ(before.ports_size(), 1);
  registered({{0, "cpu"}, {2, "cpu"}});
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(launch(), before));
}

// The placement itself records what the launch needs.
TEST_F(LaunchTest, APlacementNamesTheTypeOfItsDevices) {
  registered({{0, "cpu"}, {1, "nvidia"}, {2, "cpu"}});
  core::Presence presence;
  const Now now{.wall = WallTime(std::chrono::hours(1)), .boot = BootTime(std::chrono::hours(1))};
  core::observe(presence, ledger_,
                core::Connected{.node = NodeName("a"),
                                .connection = ConnectionId(1),
                                .instance = InstanceId("i"),
                                .boot_id = BootId("b")},
                now);
  core::JobRecord job;
  job.id = job_;
  job.spec = spec_;
  job.spec.mutable_resources()->set_devices(2);
  const core::PlaceResult result = core::place(ledger_, presence, job, now, core::Limits());
  ASSERT_EQ(result.nodes.size(), 1u) << result.why;
  EXPECT_EQ(result.nodes[0].devices, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(result.nodes[0].device_type, "cpu");
}

}  // namespace
}  // namespace muster::controller
