// The whole probe with stand-in tools on its PATH, good ones and bad ones.
#include "agent/probe/probe.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/probe/ascend.h"
#include "agent/probe/fixed_inventory.h"
#include "agent/probe/numa.h"
#include "agent/probe/nvidia.h"
#include "agent/probe/occupants.h"
#include "agent/probe/own_processes.h"
#include "folder.h"

namespace muster::agent::probe {
namespace {

using std::chrono::milliseconds;

class Probe : public testing::Test {
 protected:
  // The stand-ins read it.
  void machine(const std::string& name) {
    ASSERT_EQ(::setenv("MUSTER_RECORDED", Recorded(name).path().c_str(), 1), 0);
  }
  void TearDown() override { ::unsetenv("MUSTER_RECORDED"); }

  // Long enough for any machine where tools end by themselves.
  [[nodiscard]] ProbeOptions options() const {
    return {.cores = 3,
            .path = folder_.path().string() + ":/usr/bin:/bin",
            .each = milliseconds(60'000),
            .total = milliseconds(120'000),
            .hccn_conf = folder_.path() / "hccn.conf",
            .sys = folder_.path() / "sys",
            .sees_all = false};
  }
  static std::string text(const Probed& probed) {
    return lines_of(Found{.devices = probed.devices, .findings = probed.findings});
  }

  Folder folder_;
  process::ToolRunner tools_;
};

TEST_F(Probe, StandInsGiveWhatWasRecorded) {
  for (const std::string name :
       {"910a_8", "910b_container", "a3_16", "910b_alarm", "npu_used", "nvidia_lost"}) {
    SCOPED_TRACE(name);
    machine(name);
    const Recorded recorded(name);
    for (const char* tool : {"npu-smi", "hccn_tool", "nvidia-smi"}) {
      std::filesystem::remove(folder_.path() / tool);
      if (std::ranges::any_of(recorded.sections(), [&](const auto& one) {
            return one.first.starts_with(std::string(tool) + " ");
          }))
        folder_.tool(tool, "recorded");
    }
    Found found = ask_ascend(recorded.ask(), {});
    if (!found.asked) found = ask_nvidia(recorded.ask());
    EXPECT_EQ(text(probe_devices(tools_, options())), lines_of(found));
  }
}

TEST_F(Probe, NumaNodesAreTheKernels) {
  machine("910a_8");
  folder_.tool("npu-smi", "recorded");
  std::istringstream numa(Recorded("910a_8").section("numa"));
  std::string bus, node;
  while (numa >> bus >> node)
    folder_.write("sys/bus/pci/devices/" + bus + "/numa_node", node + "\n");
  std::vector<std::optional<int>> nodes;
  for (const Device& device : probe_devices(tools_, options()).devices)
    nodes.push_back(device.numa_node);
  EXPECT_EQ(nodes, (std::vector<std::optional<int>>{3, 2, 1, 0, 3, 2, 1, std::nullopt}));
  EXPECT_FALSE(numa_node_of(folder_.path() / "sys", "../../../../etc"));
  EXPECT_FALSE(numa_node_of(folder_.path() / "sys", ""));
}

TEST_F(Probe, AddressesOfTheFileWhereThereIsNoTool) {
  machine("910b_container_conf");
  folder_.tool("npu-smi", "recorded");
  folder_.write("hccn.conf", Recorded("910b_container_conf").section("/etc/hccn.conf"));
  const Probed probed = probe_devices(tools_, options());
  ASSERT_EQ(probed.devices.size(), 4U);
  EXPECT_EQ(probed.devices[0].addresses, std::vector<std::string>{"192.168.4.21"});
  EXPECT_TRUE(probed.findings.empty()) << text(probed);
}

TEST_F(Probe, NoToolsAreCpuSlots) {
  EXPECT_EQ(text(probe_devices(tools_, options())), "0 cpu '' ok\n1 cpu '' ok\n2 cpu '' ok\n");
  machine("npu_none");
  folder_.tool("npu-smi", "recorded");
  EXPECT_EQ(text(probe_devices(tools_, options())), "0 cpu '' ok\n1 cpu '' ok\n2 cpu '' ok\n")
      << "a driver without cards";
}

TEST_F(Probe, WhatWasWrittenDownIsNotAsked) {
  folder_.tool("npu-smi", "hang");
  folder_.tool("nvidia-smi", "hang");
  ProbeOptions fixed = options();
  fixed.fixed = *parse_fixed_inventory(
      "id=0 type=ascend910b bus=0000:c1:00.0\nid=1 type=ascend910b bus=0000:c2:00.0 numa=7\n");
  folder_.write("sys/bus/pci/devices/0000:c1:00.0/numa_node", "1\n");
  folder_.write("sys/bus/pci/devices/0000:c2:00.0/numa_node", "1\n");
  EXPECT_EQ(text(probe_devices(tools_, fixed)),
            "0 ascend910b '' card 0.0 bus 0000:c1:00.0 numa 1 ok\n1 ascend910b '' card 1.0 bus "
            "0000:c2:00.0 numa 7 ok\n");
  ProbeOptions slots = options();
  slots.slots = 1;
  EXPECT_EQ(text(probe_devices(tools_, slots)), "0 cpu '' ok\n");
}

// A node whose cards cannot be seen must not get their jobs as CPU slots: it announces no devices,
// and one sentence with the reason.
TEST_F(Probe, AToolThatIsNoUse) {
  machine("910b_alarm");
  struct Row {
    const char* stand_in;
    const char* npu;
    const char* nvidia;
  };
  for (const Row& row :
       {Row{"hang", "finding: npu-smi info gave no devices: it did not end within 300 ms\n",
            "it did not end within 300 ms\n"},
        Row{"flood", "finding: npu-smi info gave no devices: it printed more than 256 KiB\n",
            "it printed more than 256 KiB\n"},
        Row{"garbage", "finding: npu-smi info gave no devices: it printed '", "it printed '"}}) {
    SCOPED_TRACE(row.stand_in);
    ProbeOptions hasty = options();
    if (std::string(row.stand_in) == "hang") hasty.each = milliseconds(300);
    folder_.tool("npu-smi", row.stand_in);
    Probed probed = probe_devices(tools_, hasty);
    EXPECT_TRUE(probed.devices.empty());
    EXPECT_NE(text(probed).find(row.npu), std::string::npos) << text(probed);
    std::filesystem::remove(folder_.path() / "npu-smi");
    folder_.tool("nvidia-smi", row.stand_in);
    probed = probe_devices(tools_, hasty);
    EXPECT_TRUE(probed.devices.empty());
    ASSERT_EQ(probed.findings.size(), 1U) << text(probed);
    EXPECT_EQ(text(probed).find(std::string("finding: nvidia-smi --query-gpu gave no device: ") +
                                row.nvidia),
              0U)
        << text(probed);
    std::filesystem::remove(folder_.path() / "nvidia-smi");
  }
  EXPECT_EQ(tools_.stuck(), 0U);
}

TEST_F(Probe, ATableThatEndsInTheMiddle) {
  machine("910b_alarm");
  folder_.tool("npu-smi", "die");
  const Probed probed = probe_devices(tools_, options());
  ASSERT_EQ(probed.devices.size(), 1U);
  EXPECT_NE(text(probed).find("finding: npu-smi info shows only half of card 1\n"),
            std::string::npos)
      << text(probed);
  EXPECT_NE(text(probed).find(
                "finding: the table of npu-smi info may not be whole: it was ended by signal 11\n"),
            std::string::npos)
      << text(probed);
}

TEST_F(Probe, AddressToolThatHangs) {
  machine("910b_container");
  folder_.tool("npu-smi", "recorded");
  folder_.tool("hccn_tool", "hang");
  ProbeOptions options = this->options();
  ASSERT_EQ(probe_devices(tools_,
                          [&] {
                            auto none = options;
                            none.path = "/usr/bin";
                            return none;
                          }())
                .devices.size(),
            3U);
  options.each = milliseconds(3000);  // the good tool needs some time
  const Probed probed = probe_devices(tools_, options);
  ASSERT_EQ(probed.devices.size(), 4U) << text(probed);
  EXPECT_TRUE(probed.devices[0].addresses.empty());
  EXPECT_NE(text(probed).find("finding: hccn_tool -ip -g gave no address for devices 0,1,2,3: it "
                              "did not end within 3000 ms\n"),
            std::string::npos)
      << text(probed);
}

TEST_F(Probe, AToolThatVanishesMidWay) {
  machine("910b_container");
  folder_.tool("npu-smi", "recorded");
  folder_.tool("hccn_tool", "vanish");
  ProbeOptions one = options();
  one.parallel = 1;
  const Probed probed = probe_devices(tools_, one);
  ASSERT_EQ(probed.devices.size(), 4U);
  EXPECT_EQ(probed.devices[0].addresses, std::vector<std::string>{"192.168.4.21"});
  EXPECT_TRUE(probed.devices[1].addresses.empty());
  EXPECT_NE(text(probed).find("hccn_tool -ip -g gave no address for devices 1,2,3: executing '"),
            std::string::npos)
      << text(probed);
  folder_.tool("npu-smi", "vanish");
  const Probed gone = probe_devices(tools_, one);
  EXPECT_EQ(gone.devices.size(), 4U) << "the table alone";
  EXPECT_NE(text(gone).find("finding: npu-smi info -m gave no numbers: executing '"),
            std::string::npos)
      << text(gone);
}

TEST_F(Probe, DevicesOfTwoMakers) {
  folder_.write("both.txt", "");
  std::ofstream both(folder_.path() / "both.txt");
  for (const char* name : {"910b_container", "nvidia_units"})
    both << std::ifstream(Recorded(name).path()).rdbuf();
  both.close();
  ASSERT_EQ(::setenv("MUSTER_RECORDED", folder_.file("both.txt").c_str(), 1), 0);
  for (const char* tool : {"npu-smi", "hccn_tool", "nvidia-smi"}) folder_.tool(tool, "recorded");
  const Probed probed = probe_devices(tools_, options());
  EXPECT_EQ(probed.devices.size(), 4U);
  EXPECT_NE(text(probed).find("finding: 1 NVIDIA devices are left out: a node's devices are of one "
                              "maker, and npu-smi shows 4\n"),
            std::string::npos)
      << text(probed);
}

TEST(ToolPath, OursAndTheVendors) {
  EXPECT_TRUE(tool_path().starts_with(std::string(::getenv("PATH")) + ":"));
  EXPECT_TRUE(tool_path().ends_with(":/usr/local/Ascend/driver/tools"));
}

std::string own_name() {
  std::string name;
  std::ifstream("/proc/self/comm") >> name;
  return name;
}

// As in a container, where a pid of the host may be any process's pid.
TEST(Occupants, OursAreNoStrangers) {
  const pid_t own = ::getpid();
  const auto left = [&](Occupant one, bool ours) {
    std::vector<Occupant> occupants = {std::move(one)};
    keep_strangers(occupants, [&](pid_t pid) { return ours && pid == own; }, false, false);
    return occupants;
  };
  EXPECT_TRUE(left({.pid = own, .name = own_name().substr(0, 13)}, true).empty());
  EXPECT_TRUE(left({.pid = own}, true).empty()) << "a tool that could not see the name";
  EXPECT_TRUE(left({.pid = 1, .pid_in_container = own, .name = own_name()}, true).empty());
  EXPECT_TRUE(
      left({.pid = own, .name = std::filesystem::read_symlink("/proc/self/exe").string()}, true)
          .empty())
      << "nvidia-smi gives paths";
  EXPECT_EQ(left({.pid = own, .name = "another"}, true).size(), 1U)
      << "the host's pid is somebody else's number here";
  const auto stranger = left({.pid = own, .name = own_name()}, false);
  ASSERT_EQ(stranger.size(), 1U);
  EXPECT_FALSE(stranger[0].user.empty());
  EXPECT_EQ(left({.pid = 0x7FFFFFFF, .name = "gone"}, true).at(0).user, "");
  std::vector<Occupant> occupants = {{.pid = own}};
  keep_strangers(occupants, nullptr, false, false);
  EXPECT_EQ(occupants.size(), 1U);
}

// Regression: in a container, the tool's pids of muster's own ranks have no meaning. A card counted
// as occupied until the next probe, and the job's next attempt waited for that.
TEST(Occupants, WhatIsUnknownOnACardOfOurs) {
  constexpr pid_t kElsewhere = 0x7FFFFFFE;
  const pid_t own = ::getpid();
  struct Row {
    const char* what;
    Occupant occupant;
    bool on_device, sees_all;
    std::size_t left;
  };
  const std::string other = "another";
  for (const Row& row :
       {Row{"a pid of the host, on a card of ours",
            {.pid = kElsewhere, .name = "python"},
            true,
            false,
            0},
        Row{"the same without a name", {.pid = kElsewhere}, true, false, 0},
        Row{"the same on a card of nobody's",
            {.pid = kElsewhere, .name = "python"},
            false,
            false,
            1},
        Row{"a number that is another process here", {.pid = own, .name = other}, true, false, 0},
        Row{"a number that is a process of that name here",
            {.pid = own, .name = own_name()},
            true,
            false,
            0},
        Row{"the same on a card of nobody's", {.pid = own, .name = own_name()}, false, false, 1},
        Row{"one of this container that is not ours",
            {.pid = kElsewhere, .pid_in_container = own, .name = own_name()},
            true,
            false,
            1},
        Row{"one of another container",
            {.pid = kElsewhere, .pid_in_container = own, .name = other},
            true,
            false,
            0},
        Row{"on the machine itself, not ours", {.pid = own, .name = other}, true, true, 1}}) {
    std::vector<Occupant> occupants = {row.occupant};
    keep_strangers(occupants, [](pid_t) { return false; }, row.on_device, row.sees_all);
    EXPECT_EQ(occupants.size(), row.left) << row.what;
  }
}

// Regression: a job that had just ended counted as an occupant until the next probe, and its
// restart waited for that.
TEST(Occupants, WhatHasEndedMeanwhileOccupiesNothing) {
  constexpr pid_t kGone = 0x7FFFFFFF;
  const auto left = [](bool ours, bool sees_all) {
    std::vector<Occupant> occupants = {{.pid = kGone, .name = "python3"}};
    keep_strangers(occupants, [&](pid_t pid) { return ours && pid == kGone; }, false, sees_all);
    return occupants.size();
  };
  EXPECT_EQ(left(false, true), 0U);
  EXPECT_EQ(left(true, false), 0U);
  EXPECT_EQ(left(false, false), 1U) << "a process of the host that a container cannot see";
}

TEST(Occupants, OnTheMachineItselfAPidIsThatProcess) {
  std::vector<Occupant> occupants = {{.pid = ::getpid(), .name = "renamed itself"}};
  keep_strangers(occupants, [](pid_t pid) { return pid == ::getpid(); }, false, true);
  EXPECT_TRUE(occupants.empty());
  occupants = {{.pid = ::getpid()}};
  keep_strangers(occupants, nullptr, false, true);
  ASSERT_EQ(occupants.size(), 1U);
  EXPECT_FALSE(occupants[0].user.empty());
}

TEST(OwnProcesses, AndWhatTheyHaveStarted) {
  OwnProcesses own;
  EXPECT_FALSE(own.holds(::getpid()));
  own.set({0x7FFFFFFF, ::getppid()});
  EXPECT_TRUE(own.holds(0x7FFFFFFF)) << "it has ended";
  EXPECT_TRUE(own.holds(::getpid())) << "a child";
  EXPECT_FALSE(own.holds(0x7FFFFFFE));
  own.set({});
  EXPECT_FALSE(own.holds(::getpid()));
}

// The tool's output about a rank may be read after the rank's end.
TEST(OwnProcesses, DevicesOfRunsThatAreOrWereThereDuringAProbe) {
  OwnProcesses own;
  own.set({}, {1});
  own.begin_probe();
  EXPECT_TRUE(own.on_device(1));
  EXPECT_FALSE(own.on_device(2));
  own.set({}, {2});
  own.set({}, {});
  EXPECT_TRUE(own.on_device(1));
  EXPECT_TRUE(own.on_device(2));
  own.begin_probe();
  EXPECT_FALSE(own.on_device(1));
  EXPECT_FALSE(own.on_device(2));
}

TEST_F(Probe, OnADeviceOfOursAPidThatSaysNothingIsOurs) {
  machine("910b_container");
  folder_.tool("npu-smi", "recorded");
  ProbeOptions options = this->options();
  options.own = std::make_shared<OwnProcesses>();
  const auto occupied = [&] {
    std::set<std::uint32_t> ids;
    for (const Device& device : probe_devices(tools_, options).devices) {
      if (!device.occupants.empty()) ids.insert(device.id);
    }
    return ids;
  };
  std::string all;
  std::ifstream file(Recorded("910b_container").path());
  for (std::string line; std::getline(file, line);) {
    const bool none = line.starts_with("| No running processes found in NPU 4 ") ||
                      line.starts_with("| No running processes found in NPU 5 ");
    all += none ? "| " + line.substr(36, 1) +
                      "       0                 | 2147483646    | python                   | 3390  "
                      "                  |\n"
                : line + "\n";
  }
  folder_.write("machine.txt", all);
  ASSERT_EQ(::setenv("MUSTER_RECORDED", folder_.file("machine.txt").c_str(), 1), 0);
  EXPECT_EQ(occupied(), (std::set<std::uint32_t>{0, 1}));
  options.own->set({}, {1});
  EXPECT_EQ(occupied(), (std::set<std::uint32_t>{0}))
      << "by its logical number: it is the host's card 5";
}

}  // namespace
}  // namespace muster::agent::probe
