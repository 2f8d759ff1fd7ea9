// What tables are made from: device ranges, lists of visible devices, addresses of cards, group
// lists.
#include <gtest/gtest.h>

#include "common/engine/ranktable/device_range.h"
#include "common/engine/ranktable/group_list.h"
#include "common/engine/ranktable/hccn.h"
#include "common/engine/ranktable/judge.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/table_text.h"
#include "tests/unit/ranktable/samples.h"

namespace muster::ranktable {
namespace {

std::string range(std::string_view text, std::uint32_t per_server = 8,
                  std::optional<Chip> chip = std::nullopt) {
  const auto parsed = parse_device_range(text, per_server, chip);
  return parsed ? fmt::format("{}-{}", parsed->first, parsed->end) : parsed.error().message;
}

TEST(DeviceRange, TheVendorsWords) {
  EXPECT_EQ(range("[0,8)"), "0-8");
  EXPECT_EQ(range("[0,4]"), "0-4");
  EXPECT_EQ(range("[4,8)"), "4-8");
  EXPECT_EQ(range("[0,3)"), "0-3");
  EXPECT_EQ(range(" [ 0 , 8 ) "), "0-8");
  EXPECT_EQ(range("[0,16)", 16), "0-16");
  EXPECT_EQ(range("[4,16)", 16), "4-16");
  EXPECT_EQ(range("[8,16)", 16), "8-16");
}

TEST(DeviceRange, WhatIsNone) {
  for (const char* bad : {"", "8", "0,8", "(0,8)", "[0,8", "[0;8)", "[,8)", "[0,)", "[-1,8)",
                          "[0,8)x", "[0x0,8)", "[0,1,2)", "[0,99999999999)"}) {
    EXPECT_EQ(range(bad),
              fmt::format(
                  "device range '{}': write [FIRST,END), for instance \"[0,8)\" for devices 0 to 7",
                  bad));
  }
  EXPECT_EQ(range("[0,9)"),
            "device range '[0,9)': ends behind device 7, the last of 8 a server; "
            "--device-num-per-node says otherwise");
  // The vendor's tool accepts this and writes a table without devices, which HCCL refuses.
  EXPECT_EQ(range("[3,3)"),
            "device range '[3,3)': has no device in it: the end is not part of it; [3,4) is device "
            "3 alone");
  EXPECT_EQ(range("[4,2)"),
            "device range '[4,2)': has no device in it: the end is not part of it; [4,5) is device "
            "4 alone");
}

TEST(DeviceRange, GroupsAreOnesOfA910) {
  const std::string across =
      "takes devices out of both groups of a 910 server (0-3 and 4-7); stay in one group or take "
      "all; --chip 910b or 910_93 for servers without groups";
  EXPECT_EQ(range("[0,6)"), "device range '[0,6)': " + across);
  EXPECT_EQ(range("[3,5)"), "device range '[3,5)': " + across);
  EXPECT_EQ(range("[2,8)"), "device range '[2,8)': " + across);
  EXPECT_EQ(range("[0,12)", 16), "device range '[0,12)': " + across);
  EXPECT_EQ(range("[3,5)", 8, Chip::A910), "device range '[3,5)': " + across);
  EXPECT_EQ(range("[0,6)", 8, Chip::A910),
            "device range '[0,6)': 6 devices; a 910 server takes part with 1, 2, 4 or 8");
  EXPECT_EQ(range("[0,3)", 8, Chip::A910),
            "device range '[0,3)': 3 devices; a 910 server takes part with 1, 2, 4 or 8");
  EXPECT_EQ(range("[0,16)", 16, Chip::A910),
            "device range '[0,16)': 16 devices; a 910 server takes part with 1, 2, 4 or 8");
  for (const Chip chip : {Chip::A910B, Chip::A910_93}) EXPECT_EQ(range("[0,6)", 8, chip), "0-6");
  EXPECT_EQ(range("[0,12)", 16, Chip::A910_93), "0-12");
}

TEST(VisibleDevices, ListsAndSpans) {
  EXPECT_EQ(*parse_visible_devices("4,5,6,7"), (std::vector<std::uint32_t>{4, 5, 6, 7}));
  EXPECT_EQ(*parse_visible_devices("4-7"), (std::vector<std::uint32_t>{4, 5, 6, 7}));
  EXPECT_EQ(*parse_visible_devices(" 0, 2-3 "), (std::vector<std::uint32_t>{0, 2, 3}));
  for (const char* bad : {"", ",", "1,", "a", "-1", "3-1", "1-", "0-4294967294", "64"}) {
    const auto devices = parse_visible_devices(bad);
    ASSERT_FALSE(devices) << bad;
    EXPECT_EQ(devices.error().message,
              fmt::format("visible devices '{}': write the numbers of physical devices, for "
                          "instance \"4,5,6,7\" or \"4-7\"",
                          bad));
  }
  EXPECT_EQ(parse_visible_devices("1,0-2").error().message,
            "visible devices '1,0-2': device 1 is there twice");
}

TEST(VisibleDevices, TheRangeIsOfLogicNumbers) {
  const auto picked = pick_devices({.first = 0, .end = 2}, {6, 7});
  ASSERT_TRUE(picked);
  ASSERT_EQ(picked->size(), 2u);
  EXPECT_EQ((*picked)[1].logic, 1u);
  EXPECT_EQ((*picked)[1].physical, 7u);
  // The vendor's tool compares only the numbers, and then reads beyond the end.
  EXPECT_EQ(pick_devices({.first = 2, .end = 4}, {6, 7}).error().message,
            "device range [2,4): only 2 devices are visible; --visible-devices lists the physical "
            "device of every logic number from 0 on");
}

TEST(Hccn, WhatTheToolPrints) {
  EXPECT_EQ(address_of_tool("ipaddr:192.1.11.10\nnetmask:255.255.255.0\n"), "192.1.11.10");
  EXPECT_EQ(address_of_tool("\nipaddr: 192.1.11.10\r\n"), "192.1.11.10");
  EXPECT_EQ(address_of_tool("ipaddr:fe80::1\n"), "fe80::1");
  for (const char* none : {"", "\n\n", "netmask:255.255.255.0\nipaddr:192.1.1.1\n", "ipaddr:\n",
                           "ipaddr:0.0.0.0\n", "ipaddr:none", "Failed: 1.2.3.4", "192.1.1.1"})
    EXPECT_EQ(address_of_tool(none), std::nullopt) << none;
}

TEST(Hccn, TheFile) {
  const auto addresses = addresses_of_conf(
      "netmask_0=255.255.255.0\n  address_0=192.1.11.10 \naddress_10 = "
      "192.1.11.20\r\nsend_arp_status_0=1\naddress_x=1\naddress_1\n# "
      "address_2=3\naddress_0=192.1.11.10");
  ASSERT_TRUE(addresses) << addresses.error().message;
  EXPECT_EQ(*addresses,
            (std::map<std::uint32_t, std::string>{{0, "192.1.11.10"}, {10, "192.1.11.20"}}));
  EXPECT_EQ(addresses_of_conf("address_0=1.1.1.1\naddress_0=1.1.1.2").error().message,
            "line 2: device 0 gets the address '1.1.1.2' here and '1.1.1.1' before");
}

constexpr const char* kCloud =
    R"({"status": "completed", "group_count": "1", "group_list": [{"group_name": "job", "device_count": "4", "instance_count": "3", "instance_list": [
  {"pod_name": "job-worker-10", "server_id": "10.0.0.1", "devices": [{"device_id": "3", "device_ip": "1.1.1.3"}]},
  {"pod_name": "job-worker-2", "server_id": "10.0.0.2", "devices": [{"device_id": "1", "device_ip": "1.1.2.1"}, {"device_id": "0", "device_ip": "1.1.2.0"}]},
  {"pod_name": "job-worker-0", "server_id": "10.0.0.1", "devices": [{"device_id": "2", "device_ip": "1.1.1.2"}]}]}]})";

GroupList cloud() {
  Findings found;
  GroupList list = read_group_list(*read_json(kCloud), found);
  EXPECT_EQ(problem_text(found), "");
  return list;
}

// By pod number, and not by text; devices keep their order. Two pods of one server are one server,
// at the position of the first.
TEST(GroupList, TheLaunchersOrder) {
  const auto table = as_launcher_reads(cloud());
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(
      table_text(*table, Layout::Launcher),
      R"({"status": "completed", "version": "1.0", "server_count": "2", "server_list": [)"
      R"({"server_id": "10.0.0.1", "device": [{"device_id": "2", "device_ip": "1.1.1.2", "rank_id": "0"}, {"device_id": "3", "device_ip": "1.1.1.3", "rank_id": "3"}]}, )"
      R"({"server_id": "10.0.0.2", "device": [{"device_id": "1", "device_ip": "1.1.2.1", "rank_id": "1"}, {"device_id": "0", "device_ip": "1.1.2.0", "rank_id": "2"}]}]})");
}

TEST(GroupList, HcclsOwnOrderIsAnother) {
  const RankTable table = as_hccl_reads(cloud());
  EXPECT_EQ(
      table_text(table, Layout::Launcher),
      R"({"status": "completed", "version": "1.0", "server_count": "2", "server_list": [)"
      R"({"server_id": "10.0.0.1", "device": [{"device_id": "2", "device_ip": "1.1.1.2", "rank_id": "0"}, {"device_id": "3", "device_ip": "1.1.1.3", "rank_id": "1"}]}, )"
      R"({"server_id": "10.0.0.2", "device": [{"device_id": "0", "device_ip": "1.1.2.0", "rank_id": "2"}, {"device_id": "1", "device_ip": "1.1.2.1", "rank_id": "3"}]}]})");
}

std::string verdict(std::string text, std::string_view what = "", std::string_view by = "") {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos);
  const Judgement judgement = judge(text.replace(at, what.size(), by), std::nullopt);
  return fmt::format("{}\n{}", to_string(judgement.verdict), problem_text(judgement.findings));
}

TEST(GroupList, ItsRules) {
  EXPECT_EQ(verdict(kCloud),
            "acceptable\nnote: it has no rank ids: HCCL numbers by server_id and device_id, the "
            "cloud's launcher by pod; `muster ranktable convert` writes the "
            "launcher's order down");
  EXPECT_EQ(verdict(kCloud, R"("group_count": "1")", R"("group_count": "2")"),
            "rejected\ngroup_count: '2', but group_list has 1");
  EXPECT_EQ(verdict(kCloud, R"("device_count": "4")", R"("device_count": "5")"),
            "rejected\ngroup_list[0].device_count: '5', but the instances have 4 devices");
  EXPECT_EQ(verdict(kCloud, R"("instance_count": "3")", R"("instance_count": 3)"),
            "rejected\ngroup_list[0].instance_count: is the number 3; every value of a rank table "
            "is a string: write \"3\"");
  EXPECT_EQ(verdict(kCloud, R"("job-worker-2")", R"("job-worker-10")"),
            "rejected\ngroup_list[0].instance_list[1].pod_name: 'job-worker-10' is there twice, "
            "first at group_list[0].instance_list[0]");
  EXPECT_EQ(verdict(kCloud, R"("device_id": "3")", R"("device_id": "8")"),
            "rejected\ngroup_list[0].instance_list[0].devices[0].device_id: '8': in this form "
            "devices are 0 to 7; version 1.0 goes further");
  EXPECT_EQ(verdict(kCloud, R"("device_ip": "1.1.2.0")", R"("device_ip": "1.1.1.3")"),
            "rejected\nas HCCL numbers it: server_list[1].device[0].device_ip: '1.1.1.3' is there "
            "twice, first at server_list[0].device[1]; every card of the "
            "cluster has its own address\n"
            "note: it has no rank ids: HCCL numbers by server_id and device_id, the cloud's "
            "launcher by pod; `muster ranktable convert` writes the launcher's "
            "order down");
  EXPECT_EQ(verdict(R"({"status": "completed"})"),
            "rejected\ngroup_count: is missing\ngroup_list: is missing");
}

TEST(GroupList, APodNeedsItsNumber) {
  GroupList list = cloud();
  list.groups[0].instances[1].pod_name = "job-master";
  list.groups[0].instances[1].pod_index.reset();
  EXPECT_EQ(as_launcher_reads(list).error().message,
            "pod_name 'job-master' does not end in a number behind a '-': the launcher orders pods "
            "by it");
}

constexpr const char* kLab =
    R"({"board_id": "0x0000", "chip_info": "910", "deploy_mode": "lab", "group_count": "1", "group_list": [{"device_num": "2", "server_num": "1", "group_name": "", "instance_count": "2", "instance_list": [
  {"devices": [{"device_id": "1", "device_ip": "1.1.1.1"}], "rank_id": "1", "server_id": "10.0.0.1"},
  {"devices": [{"device_id": "0", "device_ip": "1.1.1.0"}], "rank_id": "0", "server_id": "10.0.0.1"}]}],
  "para_plane_nic_location": "device", "para_plane_nic_name": ["eth0", "eth1"], "para_plane_nic_num": "2", "status": "completed"})";

TEST(GroupList, TheLabFormHasRankIds) {
  Findings found;
  const GroupList list = read_group_list(*read_json(kLab), found);
  EXPECT_EQ(problem_text(found), "");
  EXPECT_EQ(
      table_text(*as_launcher_reads(list), Layout::Launcher),
      R"({"status": "completed", "version": "1.0", "server_count": "1", "server_list": [{"server_id": "10.0.0.1", "device": [{"device_id": "0", "device_ip": "1.1.1.0", "rank_id": "0"}, {"device_id": "1", "device_ip": "1.1.1.1", "rank_id": "1"}]}]})");
  EXPECT_EQ(verdict(kLab), "acceptable\n");
  EXPECT_EQ(verdict(kLab, R"("rank_id": "1")", R"("rank_id": "0")"),
            "rejected\nas HCCL numbers it: server_list[0].device[1].rank_id: rank 0 is there "
            "twice, first at server_list[0].device[0]; every rank from 0 to 1 "
            "is there once");
  EXPECT_EQ(verdict(kLab, R"("para_plane_nic_location": "device")",
                    R"("para_plane_nic_location": "host")"),
            "rejected\npara_plane_nic_location: 'host': only 'device' is read");
  EXPECT_EQ(verdict(kLab, R"("server_num": "1")", R"("server_num": "2")"), "acceptable\n");
  EXPECT_EQ(verdict(kLab, R"("server_num": "1")", R"("server_num": "3")"),
            "rejected\ngroup_list[0].server_num: '3' servers for 2 devices; every server has 1, 2, "
            "4, 8 or 16");
}

TEST(FileNames, AreTheVendors) {
  EXPECT_EQ(server_file_name(std::vector<std::uint32_t>{2, 3}, "10.20.0.11"),
            "hccl_2p_23_10.20.0.11.json");
  std::vector<std::uint32_t> sixteen(16);
  for (std::uint32_t i = 0; i < 16; ++i) sixteen[i] = i;
  EXPECT_EQ(server_file_name(sixteen, "h"), "hccl_16p_0123456789101112131415_h.json");
  EXPECT_EQ(merged_file_name(sample(3, 8)), "hccl_3s_24p.json");
}

TEST(Merge, RefusesWhatIsNotOfOneKind) {
  EXPECT_EQ(merge({}).error().message, "merging rank tables: there is none");
  const std::vector<RankTable> mixed = {sample(1, 1), sample(2, 1, Version::SuperPods)};
  EXPECT_EQ(
      merge(mixed).error().message,
      "merging rank tables: one has version 1.0, another 1.2; make them all the same version");
  const std::vector<RankTable> big = {sample(4'096, 16), sample(1, 1)};
  EXPECT_EQ(merge(big).error().message, "merging rank tables: more than 65536 ranks together");
}

}  // namespace
}  // namespace muster::ranktable
