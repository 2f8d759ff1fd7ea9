// CPU cores of ranks, by the NUMA nodes of their devices, on invented machines.
#include "agent/launch/core_shares.h"

#include <gtest/gtest.h>

#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using process::CpuList;

// One list of devices for each rank.
v1::NodeLaunch with_devices(const std::vector<std::vector<std::uint32_t>>& devices) {
  v1::NodeLaunch order;
  for (const auto& of_rank : devices) {
    v1::RankProcess& rank = *order.add_ranks();
    for (const std::uint32_t device : of_rank) rank.add_devices(device);
  }
  return order;
}

std::vector<std::string> texts(const std::vector<CpuList>& shares) {
  std::vector<std::string> out;
  for (const CpuList& share : shares) out.push_back(process::cpu_list_text(share));
  return out;
}

// Two NUMA nodes of four cores with two threads each: 0-3 and 8-11, 4-7 and 12-15.
class Machine {
 public:
  Machine() {
    dir_.write("devices/system/node/node0/cpulist", "0-3,8-11\n");
    dir_.write("devices/system/node/node1/cpulist", "4-7,12-15\n");
    for (int cpu = 0; cpu < 16; ++cpu)
      dir_.write("devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
                 std::to_string(cpu % 8) + "," + std::to_string(cpu % 8 + 8) + "\n");
  }
  [[nodiscard]] NumaCores cores(const char* allowed = "0-15") const {
    return read_cores(dir_.path(), kEight, *process::parse_cpu_list(allowed));
  }
  inline static const NumaNodes kEight = {{0, 0}, {1, 0}, {2, 0}, {3, 0},
                                          {4, 1}, {5, 1}, {6, 1}, {7, 1}};

 private:
  TempDir dir_;
};

TEST(CoreShares, RanksOfOneNumaNodeDivideItsCoresAndNeverACore) {
  const Machine machine;
  EXPECT_EQ(
      texts(share_cores(with_devices({{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}), Machine::kEight,
                        machine.cores())),
      (std::vector<std::string>{"0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"}));
  EXPECT_EQ(texts(share_cores(with_devices({{0}, {3}, {5}}), Machine::kEight, machine.cores())),
            (std::vector<std::string>{"0-1,8-9", "2-3,10-11", "4-7,12-15"}));
  EXPECT_EQ(texts(share_cores(with_devices({{0}, {1}, {2}}), Machine::kEight, machine.cores())),
            (std::vector<std::string>{"0,8", "1,9", "2-3,10-11"}))
      << "every core is somebody's";
}

TEST(CoreShares, OnlyWhereTheAgentMayRun) {
  const Machine machine;
  EXPECT_EQ(texts(share_cores(with_devices({{0}, {1}}), Machine::kEight, machine.cores("0-3"))),
            (std::vector<std::string>{"0-1", "2-3"}));
  EXPECT_EQ(
      texts(share_cores(with_devices({{0}, {1}, {4}}), Machine::kEight, machine.cores("2,10"))),
      (std::vector<std::string>{"2,10", "2,10", ""}))
      << "fewer cores than ranks: they share them; none at all: nobody is bound";
}

TEST(CoreShares, ARankWithSeveralDevicesHasItsPartAtEach) {
  const Machine machine;
  EXPECT_EQ(texts(share_cores(with_devices({{0, 4}, {1}}), Machine::kEight, machine.cores())),
            (std::vector<std::string>{"0-1,4-9,12-15", "2-3,10-11"}));
}

TEST(CoreShares, WhatIsNotKnownBindsNobody) {
  const Machine machine;
  EXPECT_EQ(
      texts(share_cores(with_devices({{0}, {9}, {0, 9}, {}}), Machine::kEight, machine.cores())),
      (std::vector<std::string>{"0-3,8-11", "", "", ""}));
  const TempDir nothing;
  EXPECT_EQ(texts(share_cores(with_devices({{0}}), Machine::kEight,
                              read_cores(nothing.path(), Machine::kEight, {0, 1}))),
            (std::vector<std::string>{""}));
  nothing.write("devices/system/node/node0/cpulist", "no list");
  EXPECT_TRUE(read_cores(nothing.path(), {{0, 0}}, {0, 1}).at(0).empty());
  nothing.write("devices/system/node/node0/cpulist", "0-1\n");
  EXPECT_EQ(read_cores(nothing.path(), {{0, 0}}, {0, 1}).at(0), (std::vector<CpuList>{{0}, {1}}))
      << "threads that nobody knows of are cores";
}

TEST(CoreShares, AreWrittenIntoTheRecord) {
  const TempDir sys;
  const auto allowed = process::allowed_cpus();
  ASSERT_TRUE(allowed);
  sys.write("devices/system/node/node3/cpulist", process::cpu_list_text(*allowed) + "\n");
  const v1::NodeLaunch order = with_devices({{5}, {6}});
  rundir::v1::Launch launch;
  launch.add_ranks();
  launch.add_ranks();
  bind_ranks(launch, order, {{5, 3}}, sys.path());
  EXPECT_EQ(launch.ranks(0).cpus(), process::cpu_list_text(*allowed));
  EXPECT_EQ(launch.ranks(1).cpus(), "");
}

}  // namespace
}  // namespace muster::agent
