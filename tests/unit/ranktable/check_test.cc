// The reader's rules, one by one: a sound table, one change, and the message.
#include <gtest/gtest.h>

#include <functional>

#include "common/engine/ranktable/judge.h"
#include "common/engine/ranktable/table_text.h"
#include "tests/unit/ranktable/samples.h"

namespace muster::ranktable {
namespace {

using Change = std::function<void(RankTable&)>;

std::string problem_text_of(RankTable table, const Change& change,
                            std::optional<Chip> chip = std::nullopt) {
  change(table);
  return problem_text(check(table, chip));
}

TEST(Check, SoundTablesAreTaken) {
  for (const Chip chip : {Chip::A910, Chip::A910B, Chip::A910_93}) {
    for (const std::size_t servers : {1, 2, 3})
      EXPECT_EQ(problem_text(check(sample(servers, 8), chip)), "");
  }
  EXPECT_EQ(problem_text(check(sample(4, 16, Version::SuperPods), Chip::A910_93)), "");
  EXPECT_EQ(problem_text(check(sample(4, 16, Version::SuperPods), std::nullopt)), "");
  EXPECT_EQ(problem_text(check(sample(1, 16), std::nullopt)), "");
}

TEST(Check, Servers) {
  EXPECT_EQ(problem_text_of(sample(2, 1), [](RankTable& t) { t.servers.clear(); }),
            "server_list: is empty; a table has at least one server");
  EXPECT_EQ(problem_text_of(sample(2, 1),
                            [](RankTable& t) { t.servers[1].server_id = t.servers[0].server_id; }),
            "server_list[1].server_id: '10.20.0.0' is there twice, first at server_list[0]");
  EXPECT_EQ(problem_text_of(sample(2, 1), [](RankTable& t) { t.servers[1].server_id = ""; }),
            "server_list[1].server_id: is empty");
  EXPECT_EQ(problem_text_of(sample(2, 1),
                            [](RankTable& t) { t.servers[1].server_id = std::string(64, 'x'); }),
            "");
  EXPECT_EQ(problem_text_of(sample(2, 1),
                            [](RankTable& t) { t.servers[1].server_id = std::string(65, 'x'); }),
            "server_list[1].server_id: '" + std::string(60, 'x') +
                "...' has 65 bytes; HCCL takes at most 64");
  EXPECT_EQ(problem_text_of(
                sample(2, 1), [](RankTable& t) { t.servers[1].devices.clear(); }, Chip::A910B),
            "server_list[1].device: is empty; a server without devices has no part");
}

TEST(Check, RanksAreDense) {
  EXPECT_EQ(
      problem_text_of(sample(2, 1), [](RankTable& t) { t.servers[1].devices[0].rank_id = 0; }),
      "server_list[1].device[0].rank_id: rank 0 is there twice, first at "
      "server_list[0].device[0]; every rank from 0 to 1 is there once");
  EXPECT_EQ(
      problem_text_of(sample(2, 1), [](RankTable& t) { t.servers[1].devices[0].rank_id = 2; }),
      "server_list[1].device[0].rank_id: '2': the table has 2 ranks, so they are 0 to 1");
  // The order in the file has no meaning.
  EXPECT_EQ(problem_text_of(sample(2, 1),
                            [](RankTable& t) {
                              std::swap(t.servers[0].devices[0].rank_id,
                                        t.servers[1].devices[0].rank_id);
                            }),
            "");
  EXPECT_EQ(problem_text_of(sample(2, 2),
                            [](RankTable& t) {
                              std::swap(t.servers[0].devices[0].rank_id,
                                        t.servers[1].devices[1].rank_id);
                            }),
            "note: server_list[0]: ranks of '10.20.0.0' and 1 more are mixed with those of other "
            "servers; HCCL reads it, but its documentation forbids it");
  EXPECT_EQ(problem_text_of(sample(2, 2),
                            [](RankTable& t) {
                              std::swap(t.servers[0].devices[0].rank_id,
                                        t.servers[1].devices[0].rank_id);
                            }),
            "note: server_list[1]: ranks of '10.20.0.1' are mixed with those of other servers; "
            "HCCL reads it, but its documentation forbids it");
}

TEST(Check, Addresses) {
  const auto set = [](std::size_t server, std::size_t device, std::string ip) {
    return [=](RankTable& t) { t.servers[server].devices[device].device_ip = ip; };
  };
  EXPECT_EQ(problem_text_of(sample(2, 2), set(1, 1, "192.0.0.0")),
            "server_list[1].device[1].device_ip: '192.0.0.0' is there twice, first at "
            "server_list[0].device[0]; every card of the cluster has its own address");
  for (const char* bad : {"192.1.1", "192.1.1.1.1", "300.1.1.1", "node-0", " 192.1.1.1", "0.0.0.0",
                          "::", "1::2::3", "fe80::1%", "192.1.1.1%eth0"}) {
    EXPECT_EQ(
        problem_text_of(sample(2, 2), set(1, 1, bad)),
        fmt::format(
            "server_list[1].device[1].device_ip: '{}' is not an IPv4 or IPv6 address of a card",
            bad));
  }
  EXPECT_EQ(problem_text_of(sample(2, 2), set(1, 1, "192.1.1.1,")),
            "server_list[1].device[1].device_ip: '' is not an IPv4 or IPv6 address of a card\n"
            "server_list[1].device[1].device_ip: has 2 addresses, but the first device has 1; "
            "every device has as many");
  EXPECT_EQ(problem_text_of(sample(2, 1),
                            [](RankTable& t) {
                              t.servers[0].devices[0].device_ip = "192.1.1.1,192.1.1.2";
                              t.servers[1].devices[0].device_ip = "192.1.1.3,192.1.1.4";
                            }),
            "");
  EXPECT_EQ(problem_text_of(sample(2, 1), set(1, 0, "fe80::1")),
            "server_list[1].device[0].device_ip: 'fe80::1' is IPv6, but others are IPv4; a table "
            "has one kind");
  // The same IPv6 address in two spellings is one address.
  EXPECT_EQ(problem_text_of(sample(2, 1),
                            [](RankTable& t) {
                              t.servers[0].devices[0].device_ip = "fe80::1";
                              t.servers[1].devices[0].device_ip = "fe80:0::1";
                            }),
            "server_list[1].device[0].device_ip: 'fe80:0::1' is there twice, first at "
            "server_list[0].device[0]; every card of the cluster has its own address");
  EXPECT_EQ(problem_text_of(sample(2, 1),
                            [](RankTable& t) {
                              t.servers[0].devices[0].device_ip = "fe80::1%eth0";
                              t.servers[1].devices[0].device_ip = "fe80::1%eth1";
                            }),
            "");
  EXPECT_EQ(problem_text_of(sample(2, 1), set(1, 0, "")),
            "server_list[1].device[0].device_ip: is missing; with more than one server every "
            "device needs its address");
  EXPECT_EQ(problem_text_of(sample(1, 2), set(0, 1, "")),
            "note: 1 of 2 devices have no device_ip; one server may do without, but 910 "
            "documentation calls it mandatory and HCCL_INTRA_ROCE_ENABLE=1 needs it");
}

TEST(Check, HostAddressesAreAllOrNone) {
  const std::string note =
      "note: servers have a host_ip: older readers then leave the cards' own addresses aside and "
      "use the host's network; leave it out unless that is meant";
  EXPECT_EQ(
      problem_text_of(sample(2, 1), [](RankTable& t) { t.servers[0].host_ip = "10.0.0.1"; }),
      "server_list[1].host_ip: is missing, but other servers have one; all have it or none\n" +
          note);
  EXPECT_EQ(problem_text_of(sample(2, 1),
                            [](RankTable& t) {
                              t.servers[0].host_ip = "10.0.0.1";
                              t.servers[1].host_ip = "n2";
                            }),
            "server_list[1].host_ip: 'n2' is not an IPv4 or IPv6 address\n" + note);
  // With the hosts' network, the cards may have no address.
  EXPECT_EQ(problem_text_of(sample(2, 1, Version::SuperPods),
                            [](RankTable& t) {
                              for (Server& server : t.servers) server.host_ip = "10.0.0.1";
                            }),
            "");
}

TEST(Check, OneChipsRules) {
  const RankTable six = sample(1, 6);
  EXPECT_EQ(problem_text(check(six, Chip::A910)),
            "server_list[0].device: 6 devices; on 910 a server takes part with 1, 2, 4 or 8");
  EXPECT_EQ(problem_text(check(six, Chip::A910B)), "");
  EXPECT_EQ(problem_text(check(six, std::nullopt)),
            "note: a 910 refuses it: server_list[0].device: 6 devices; on 910 a server takes part "
            "with 1, 2, 4 or 8");
  EXPECT_EQ(problem_text_of(
                sample(2, 4), [](RankTable& t) { t.servers[1].devices.resize(2); }, Chip::A910),
            "server_list[1].device: 2 devices, but the first server has 4; on 910 every server has "
            "as many");
  EXPECT_EQ(problem_text_of(
                sample(2, 4), [](RankTable& t) { t.servers[1].devices.resize(2); }, Chip::A910B),
            "");
  const auto cards = [](std::vector<std::uint32_t> ids) {
    return [ids](RankTable& t) {
      for (std::size_t d = 0; d < ids.size(); ++d) t.servers[0].devices[d].device_id = ids[d];
    };
  };
  EXPECT_EQ(problem_text_of(sample(1, 2), cards({4, 7}), Chip::A910), "");
  EXPECT_EQ(problem_text_of(sample(1, 2), cards({3, 4}), Chip::A910),
            "server_list[0].device: 2 devices out of both groups of a 910 server; take them out of "
            "0-3 or out of 4-7");
  EXPECT_EQ(problem_text_of(sample(1, 1), cards({8}), Chip::A910),
            "server_list[0].device[0].device_id: '8': a 910 server has devices 0 to 7");
  EXPECT_EQ(problem_text_of(sample(1, 1), cards({15}), std::nullopt), "");
  EXPECT_EQ(problem_text_of(sample(1, 1), cards({16}), std::nullopt),
            "server_list[0].device[0].device_id: '16': servers have devices 0 to 15 at most");
  EXPECT_EQ(problem_text_of(sample(1, 4), cards({0, 1, 8, 9}), Chip::A910B), "");
  const std::string halves =
      "server_list[0].device: uses different positions of the two halves of a 910b server (0-7 and "
      "8-15); use the same ones of each (HCCL takes others only with HCCL_INTRA_ROCE_ENABLE=1)";
  EXPECT_EQ(problem_text_of(sample(1, 4), cards({0, 1, 8, 10}), Chip::A910B), halves);
  EXPECT_EQ(problem_text_of(sample(1, 4), cards({0, 1, 8, 10}), std::nullopt),
            "note: a 910b refuses it: " + halves);
  EXPECT_EQ(problem_text_of(sample(1, 4), cards({0, 1, 8, 10}), Chip::A910_93), "");
  EXPECT_EQ(problem_text_of(sample(1, 2), cards({1, 1}), Chip::A910),
            "server_list[0].device[1].device_id: device 1 is twice on this server, first at "
            "server_list[0].device[0]");
  EXPECT_EQ(problem_text_of(sample(1, 2), cards({1, 1}), Chip::A910B),
            "note: server_list[0].device[1].device_id: device 1 is twice on this server, first at "
            "server_list[0].device[0]; its ranks need different device_port and host_port");
}

TEST(Check, SuperPods) {
  const RankTable sound = sample(4, 2, Version::SuperPods);
  EXPECT_EQ(problem_text_of(sound, [](RankTable& t) { t.servers[3].super_pod_id = "0"; }),
            "server_list[3].device[0].super_device_id: '2' is there twice in super-pod '0', first "
            "at server_list[1].device[0]\n"
            "server_list[3].device[1].super_device_id: '3' is there twice in super-pod '0', first "
            "at server_list[1].device[1]\n"
            "super_pod_list: super-pod '1' has 1 of the servers, but '0' has 3; all have as many\n"
            "note: super_pod_list: servers of super-pod '0' are mixed with those of others; HCCL's "
            "documentation forbids it");
  EXPECT_EQ(problem_text_of(sound, [](RankTable& t) { t.servers[3].super_pod_id = ""; }),
            "server_list[3]: '10.20.0.3' is in no super-pod; every server is in one\n"
            "super_pod_list: super-pod '1' has 1 of the servers, but '0' has 2; all have as many");
  EXPECT_EQ(
      problem_text_of(sound, [](RankTable& t) { t.servers[3].devices[0].super_device_id = ""; }),
      "server_list[3].device[0].super_device_id: is missing; `npu-smi info -t spod-info -i "
      "NPU -c CHIP` shows it as SDID");
  EXPECT_EQ(problem_text_of(sound,
                            [](RankTable& t) { t.servers[3].devices[0].super_device_id = "0x10"; }),
            "server_list[3].device[0].super_device_id: '0x10' is not a decimal number; write the "
            "SDID in decimal");
  EXPECT_EQ(problem_text_of(sound, [](RankTable& t) { t.servers[3].devices[0].device_ip = ""; }),
            "server_list[3].device[0].device_ip: is missing; with more than one super-pod every "
            "device needs its address");
  EXPECT_EQ(problem_text_of(sample(2, 1, Version::SuperPods),
                            [](RankTable& t) { t.servers[1].devices[0].device_ip = ""; }),
            "note: 1 of 2 devices have no device_ip; readers of 2024 insist on it with more than "
            "one server, and HCCL_INTER_HCCS_DISABLE=TRUE needs it");
  EXPECT_EQ(problem_text_of(sound,
                            [](RankTable& t) {
                              for (Server& server : t.servers) server.super_pod_id.clear();
                            }),
            "note: super_pod_list: is missing: the table is then read without super-pods");
  EXPECT_EQ(problem_text(check(sound, Chip::A910B)),
            "note: version: 1.2: a 910b reads it without its super-pods");
}

TEST(Check, TooManyAreCountedNotListed) {
  RankTable table = sample(40, 16);
  for (Server& server : table.servers) {
    for (Device& device : server.devices) device.device_ip = "x";
  }
  const Findings found = check(table, std::nullopt);
  EXPECT_EQ(found.problems.size(), kFindingsMax);
  EXPECT_EQ(found.left_out, 40u * 16 - kFindingsMax);
  EXPECT_EQ(problem_text(check(sample(8'193, 8), std::nullopt)),
            "server_list: has 65544 devices; muster reads at most 65536");
}

}  // namespace
}  // namespace muster::ranktable
