#include "client/render/health_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

using testing::HasSubstr;

constexpr WallTime kCheckedNow = WallTime(std::chrono::seconds(1'800'000'000));
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

v1::Node well() {
  v1::Node node;
  node.set_name("n0");
  node.set_connected(true);
  node.set_version("1");
  *node.mutable_last_heard() = to_proto(kCheckedNow - std::chrono::seconds(1));
  *node.mutable_clock_ahead() = to_proto(std::chrono::milliseconds(3));
  v1::HostReading& host = *node.mutable_host();
  host.set_state_dir("/var/lib/muster");
  host.set_disk_bytes(100 * kGiB);
  host.set_disk_bytes_free(50 * kGiB);
  host.set_inodes(1'000'000);
  host.set_inodes_free(900'000);
  return node;
}
std::vector<Check> checks_of(const v1::Node& node) { return node_checks(node, "1", kCheckedNow); }
// The check of this kind; its level is Ok and its text empty if there is none.
Check find(const std::vector<Check>& checks, std::string_view what) {
  for (const Check& check : checks) {
    if (check.what == what) return check;
  }
  return {};
}

TEST(HealthChecks, ANodeThatIsWell) {
  for (const Check& check : checks_of(well())) {
    EXPECT_EQ(check.level, Level::Ok) << check.what << ": " << check.text;
    EXPECT_EQ(check.advice, "");
    EXPECT_EQ(check.subject, "node n0");
  }
  EXPECT_EQ(find(checks_of(well()), "disk").text,
            "/var/lib/muster: 50.0 GiB of 100.0 GiB free, 900000 inodes");
}

TEST(HealthChecks, ANodeThatIsAway) {
  v1::Node node = well();
  node.set_connected(false);
  const auto checks = checks_of(node);
  ASSERT_EQ(checks.size(), 1U) << "what it has reported may be old";
  EXPECT_EQ(checks.front().level, Level::Bad);
  EXPECT_THAT(checks.front().advice, HasSubstr("its agent running?"));
  node.set_dead(true);
  EXPECT_EQ(checks_of(node).front().level, Level::Warn);
  EXPECT_THAT(checks_of(node).front().advice, HasSubstr("muster node rm n0"));
}

TEST(HealthChecks, Clocks) {
  v1::Node node = well();
  const auto level = [&](Duration ahead) {
    *node.mutable_clock_ahead() = to_proto(ahead);
    return find(checks_of(node), "clock").level;
  };
  EXPECT_EQ(level(-std::chrono::seconds(4)), Level::Ok);
  EXPECT_EQ(level(-std::chrono::seconds(20)), Level::Warn);
  EXPECT_EQ(find(checks_of(node), "clock").text, "20s behind the controller's clock");
  EXPECT_EQ(level(std::chrono::seconds(70)), Level::Bad);
}

TEST(HealthChecks, Disks) {
  const auto level = [](auto change) {
    v1::Node node = well();
    change(node);
    const Check check = *disk_check(node);
    EXPECT_EQ(check.level == Level::Ok, check.advice.empty());
    return check.level;
  };
  EXPECT_EQ(level([](v1::Node& node) { node.set_disk_trouble("full"); }), Level::Bad);
  EXPECT_EQ(level([](v1::Node& node) { node.mutable_host()->set_read_only(true); }), Level::Bad);
  EXPECT_EQ(level([](v1::Node& node) { node.mutable_host()->set_disk_bytes_free(kGiB); }),
            Level::Warn);
  EXPECT_EQ(level([](v1::Node& node) { node.mutable_host()->set_disk_bytes_free(1); }), Level::Bad);
  EXPECT_EQ(level([](v1::Node& node) { node.mutable_host()->set_inodes_free(5'000); }),
            Level::Warn);
  EXPECT_EQ(level([](v1::Node& node) { node.mutable_host()->set_inodes_free(0); }), Level::Bad);
  // btrfs counts no inodes.
  EXPECT_EQ(level([](v1::Node& node) {
              node.mutable_host()->set_inodes(0);
              node.mutable_host()->set_inodes_free(0);
            }),
            Level::Ok);
  EXPECT_EQ(
      level([](v1::Node& node) { node.mutable_host()->set_disk_error("Input/output error"); }),
      Level::Bad);
  v1::Node old = well();
  old.clear_host();
  EXPECT_FALSE(disk_check(old)) << "an older agent does not report it";
}

TEST(HealthChecks, WhatElseANodeReports) {
  v1::Node node = well();
  node.set_version("0.9");
  node.mutable_host()->set_cgroup_trouble("no control groups");
  node.mutable_host()->add_missing_tools("git: code.patches");
  *node.mutable_host()->mutable_certificate_ends() = to_proto(kCheckedNow + std::chrono::hours(48));
  v1::DeviceReading& reading = *node.add_readings();
  reading.set_health(v1::DEVICE_HEALTH_BAD);
  node.add_unknown_attempts();
  const auto checks = checks_of(node);
  EXPECT_EQ(find(checks, "version").text, "its agent is 0.9, the controller 1");
  EXPECT_EQ(find(checks, "cgroups").level, Level::Warn);
  EXPECT_EQ(find(checks, "programs").text, "missing: git: code.patches");
  EXPECT_EQ(find(checks, "certificate").level, Level::Warn);
  EXPECT_THAT(find(checks, "certificate").advice, HasSubstr("muster cert issue --node n0"));
  EXPECT_EQ(find(checks, "devices").level, Level::Bad);
  EXPECT_EQ(find(checks, "unknown runs").level, Level::Bad);
}

TEST(HealthChecks, Certificates) {
  const auto level = [](Duration left) {
    return certificate_check("x", kCheckedNow + left, kCheckedNow, "renew it").level;
  };
  EXPECT_EQ(level(std::chrono::hours(24 * 30)), Level::Ok);
  EXPECT_EQ(level(std::chrono::hours(24 * 10)), Level::Ok) << "a node renews it from then on";
  EXPECT_EQ(level(std::chrono::hours(24 * 6)), Level::Warn);
  EXPECT_EQ(level(Duration::zero()), Level::Bad);
  EXPECT_EQ(
      certificate_check("x", kCheckedNow + std::chrono::hours(24 * 30), kCheckedNow, "r").advice,
      "");
}

// One of 'muster login' begins a day before it is made, and ends a day after that.
TEST(HealthChecks, TheCertificateOfAPersonIsJudgedByItsLife) {
  const auto of_a_day = [](Duration left) {
    const WallTime ends = kCheckedNow + left;
    return client_certificate_check(ends - std::chrono::hours(48), ends, kCheckedNow);
  };
  EXPECT_EQ(of_a_day(std::chrono::hours(23)).level, Level::Ok);
  EXPECT_EQ(of_a_day(std::chrono::hours(5)).level, Level::Warn);
  EXPECT_THAT(of_a_day(std::chrono::hours(5)).advice, HasSubstr("muster login"));
  EXPECT_EQ(of_a_day(Duration::zero()).level, Level::Bad);
  const WallTime ends = kCheckedNow + std::chrono::hours(24 * 6);
  EXPECT_EQ(
      client_certificate_check(ends - std::chrono::hours(24 * 365), ends, kCheckedNow).level,
      Level::Warn);
}

TEST(HealthChecks, TheController) {
  v1::GetClusterStatusResponse status;
  status.set_state_dir("/srv");
  status.set_disk_bytes(10 * kGiB);
  status.set_disk_bytes_free(5 * kGiB);
  EXPECT_EQ(find(controller_checks(status, kCheckedNow), "disk").level, Level::Ok);
  status.set_disk_bytes_free(kGiB);
  EXPECT_EQ(find(controller_checks(status, kCheckedNow), "disk").level, Level::Warn);
  status.set_disk_shortage("nearly full");
  EXPECT_EQ(find(controller_checks(status, kCheckedNow), "disk").level, Level::Bad);
  status.set_paused("the journal is older");
  EXPECT_EQ(find(controller_checks(status, kCheckedNow), "paused").level, Level::Bad);
}

v1::Node with_outputs(const std::string& name, const std::string& storage, std::uint32_t nodes) {
  v1::Node node = well();
  node.set_name(name);
  node.mutable_outputs()->set_root("/srv/out");
  node.mutable_outputs()->set_storage(storage);
  node.mutable_outputs()->set_nodes(nodes);
  return node;
}

TEST(HealthChecks, TheDirectoryOfOutputs) {
  EXPECT_FALSE(outputs_check(well()));
  EXPECT_EQ(outputs_check(with_outputs("n0", "", 0))->text,
            "/srv/out: not known yet which nodes share it");
  EXPECT_EQ(outputs_check(with_outputs("n0", "aaaa", 1))->text,
            "/srv/out: no other node sees the files there");
  EXPECT_EQ(outputs_check(with_outputs("n0", "aaaa", 4))->text,
            "/srv/out: shared by 4 nodes (storage aaaa)");
  v1::Node node = with_outputs("n0", "", 0);
  node.mutable_outputs()->set_trouble("'/srv/out': Read-only file system");
  EXPECT_EQ(find(checks_of(node), "outputs").level, Level::Warn);
  EXPECT_EQ(find(checks_of(node), "outputs").text,
            "jobs cannot save there: '/srv/out': Read-only file system");
}

TEST(HealthChecks, WhetherTheNodesShareIt) {
  google::protobuf::RepeatedPtrField<v1::Node> nodes;
  *nodes.Add() = well();
  EXPECT_FALSE(shared_outputs_check(nodes)) << "no agent has reported it";
  nodes.Clear();
  *nodes.Add() = with_outputs("n0", "aaaa", 2);
  EXPECT_EQ(shared_outputs_check(nodes)->text, "/srv/out, on the only node");
  *nodes.Add() = with_outputs("n1", "aaaa", 2);
  EXPECT_EQ(shared_outputs_check(nodes)->text, "/srv/out: 2 of 2 connected nodes share it");
  *nodes.Add() = with_outputs("n2", "", 0);
  EXPECT_EQ(shared_outputs_check(nodes)->text,
            "/srv/out: 2 of 3 connected nodes share it, of the others it is not known");
  EXPECT_EQ(shared_outputs_check(nodes)->level, Level::Ok);
  nodes.Mutable(2)->mutable_outputs()->set_storage("bbbb");
  const Check apart = *shared_outputs_check(nodes);
  EXPECT_EQ(apart.level, Level::Warn);
  EXPECT_EQ(apart.text, "/srv/out: the nodes have 2 different storages there (n0 and 1 more; n2)");
  EXPECT_THAT(apart.advice, HasSubstr("--outputs-root"));
  nodes.Mutable(2)->set_connected(false);
  EXPECT_EQ(shared_outputs_check(nodes)->level, Level::Ok) << "what it reported may be old";
}

}  // namespace
}  // namespace muster::render
