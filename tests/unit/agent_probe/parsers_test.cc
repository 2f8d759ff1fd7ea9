// The small values in the output of device tools, one row each.
#include <gtest/gtest.h>

#include "agent/probe/card_network.h"
#include "agent/probe/fixed_inventory.h"
#include "agent/probe/npu_smi.h"
#include "agent/probe/nvidia_smi.h"
#include "agent/probe/text.h"

namespace muster::agent::probe {
namespace {

TEST(Parsers, TypeOfAName) {
  struct Row {
    const char* name;
    bool a3, ddr;
    DeviceType type;
  };
  using enum DeviceType;
  for (const Row& row :
       {Row{"910A", false, true, Ascend910}, Row{"910B", false, true, Ascend910},
        Row{"910ProA", false, true, Ascend910}, Row{"910ProB", false, true, Ascend910},
        Row{"910PremiumA", false, true, Ascend910}, Row{"910", false, true, Ascend910},
        Row{"Ascend910B1", false, false, Ascend910b}, Row{"910B2C", false, false, Ascend910b},
        Row{"910B4-1", false, false, Ascend910b}, Row{"Ascend910", true, false, Ascend910_93},
        Row{"910_9392", false, false, Ascend910_93}, Row{"910", false, false, AscendOther},
        Row{"310P3", false, false, AscendOther}, Row{"950DT", false, false, AscendOther},
        Row{"", false, false, AscendOther}}) {
    EXPECT_EQ(type_of(row.name, row.a3, row.ddr), row.type) << row.name;
  }
  for (const DeviceType type : {Ascend910, Ascend910b, Ascend910_93, AscendOther, Nvidia, Cpu})
    EXPECT_EQ(device_type(to_string(type)), type);
  EXPECT_FALSE(device_type("ascend310"));
}

TEST(Parsers, LevelOfHealth) {
  EXPECT_EQ(level_of("OK"), HealthLevel::Ok);
  EXPECT_EQ(level_of("Warning"), HealthLevel::Warning);
  for (const char* bad : {"Alarm", "Critical", "UNKNOWN", "OKAY", ""})
    EXPECT_EQ(level_of(bad), HealthLevel::Bad) << bad;
  Health health;
  health.add(HealthLevel::Warning, "a");
  health.add(HealthLevel::Ok, "b");
  health.add(HealthLevel::Ok, "");
  EXPECT_EQ(health.level, HealthLevel::Warning);
  EXPECT_EQ(health.text, "a; b");
}

TEST(Parsers, PciAddress) {
  EXPECT_EQ(pci_address("0000:C1:00.0"), "0000:c1:00.0");
  EXPECT_EQ(pci_address("00000000:0F:00.0"), "0000:0f:00.0");
  EXPECT_EQ(pci_address("00000001:00:00.0"), "0001:00:00.0");
  EXPECT_EQ(pci_address("0001ABCD:00:1f.7"), "1abcd:00:1f.7");
  for (const char* none : {"", "NA", "0000:C1:00", "0000:C1:00.00", "000:C1:00.0", "0000:G1:00.0",
                           "0000:C1:00.0:1", "../../../00.0", "0000:..:00.0", "0000:C1:/0.0"}) {
    EXPECT_FALSE(pci_address(none)) << none;
  }
}

TEST(Parsers, FactsOfKeyValueForms) {
  const std::string board =
      "\tNPU ID                         : 0\n\tPCIe Bus Info                  : "
      "0000:61:00.0\r\n\tClass ID                       : NA\n";
  EXPECT_EQ(fact(board, "PCIe Bus Info"), "0000:61:00.0");
  EXPECT_FALSE(fact(board, "Class ID"));
  EXPECT_FALSE(fact(board, "Bus Info"));
  EXPECT_EQ(parse_npu_board(board).bus_id, "0000:61:00.0");
  EXPECT_EQ(parse_npu_health("\tHealth                         : Warning\n").status, "Warning");
  const NpuUsages old = parse_npu_usages(
      "\tDDR Capacity(MB)               : 13553\n\tDDR Usage Rate(%)              : 6\n\tHBM "
      "Capacity(MB)               : 32768\n\tHBM Usage Rate(%)           "
      "   : 50\n");
  EXPECT_EQ(old.memory_total_mib, 32768U);
  EXPECT_EQ(old.memory_used_mib, 16384U);
  EXPECT_FALSE(parse_npu_usages("\tHBM Capacity(MB)               : 99999999999999999999\n")
                   .memory_total_mib);
}

TEST(Parsers, SuperPod) {
  const NpuSuperPod pod = parse_npu_super_pod(
      "SDID : 16777216\nSuper Pod Size : 384\nSuper Pod ID : 0\nServer Index : 4\n");
  EXPECT_EQ(pod.device_id, "16777216");
  EXPECT_EQ(pod.pod_id, "0");
  EXPECT_EQ(pod.server_index, 4U);
  const NpuSuperPod none = parse_npu_super_pod(
      "SDID : 4294967295\nSuper Pod ID : 4294967295\nServer Index : 4294967295\n");
  EXPECT_FALSE(none.device_id || none.pod_id || none.server_index);
}

TEST(Parsers, CardNetwork) {
  EXPECT_EQ(parse_link("link status: UP\n"), true);
  EXPECT_EQ(parse_link("link status:DOWN"), false);
  EXPECT_FALSE(parse_link("link status: MAYBE"));
  EXPECT_FALSE(parse_link("permission denied: pls check this cmd run environment."));
  EXPECT_EQ(parse_net_health("net health status: Success\n"), "");
  EXPECT_EQ(parse_net_health("net health status: Init\n"), "");
  EXPECT_EQ(parse_net_health("net health status: Fault\n"), "Fault");
  EXPECT_EQ(parse_net_health("net health status: Receive timeout\n"), "Receive timeout");
  EXPECT_FALSE(parse_net_health("Command execute failed!\n"));
}

TEST(Parsers, MappingWithSingleBlanks) {
  const auto places = parse_npu_mapping(
      "NPU ID Chip ID Chip Logic ID Chip Phy-ID Chip Name\n5 1 9 3 Ascend910\n5 2 - - Mcu\n");
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].card, 5U);
  EXPECT_EQ(places[0].chip, 1U);
  EXPECT_EQ(places[0].logic, 9U);
  EXPECT_EQ(places[0].physical, 3U);
  EXPECT_TRUE(places[0].a3);
  EXPECT_EQ(places[0].name, "Ascend910");
  EXPECT_TRUE(parse_npu_mapping("0 0 0 Ascend 910B3\n").empty()) << "no header, no meaning";
}

TEST(FixedInventory, OneDeviceALine) {
  const auto devices = parse_fixed_inventory(
      "# the left board\n"
      "id=1 type=ascend910b name=910B3 physical=5 bus=0000:C2:00.0 memory_mib=65536 "
      "address=192.1.1.5 numa=1  # slot 5\n\n"
      "type=ascend910_93 id=0 super_device=16777216 super_pod=0 server=4\n");
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ(to_text(devices->at(0)),
            "0 ascend910_93 '' card 0.0 super device 16777216 super pod 0 server 4 ok");
  EXPECT_EQ(to_text(devices->at(1)),
            "1 ascend910b '910B3' physical 5 card 5.0 bus 0000:c2:00.0 memory ?/65536 MiB address "
            "192.1.1.5 numa 1 ok");
  EXPECT_TRUE(parse_fixed_inventory("")->empty());
}

TEST(FixedInventory, EveryProblemWithItsLine) {
  const auto devices = parse_fixed_inventory(
      "id=0 type=tpu\nid=0 type=cpu\nname=x\nid=1 type=cpu id=1 speed=9\nid=2000 type=cpu "
      "address=0.0.0.0 bus=7\n");
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(devices.error().message,
            "reading the list of devices: line 1: type='tpu' is not one of ascend910, ascend910b, "
            "ascend910_93, ascend, nvidia, cpu; line 2: device 0 is on line 1 already; line 3: "
            "'id=' is missing; line 3: 'type=' is missing; line 4: 'id' is given twice; line 4: "
            "'speed=9' is no KEY=VALUE of a device; keys: address bus id memory_mib name numa "
            "physical server super_device super_pod type; line 5: id='2000' is not a number from 0 "
            "to 1023; line 5: address='0.0.0.0' is not an IPv4 or IPv6 address; line 5: bus='7' is "
            "not a PCI address as 0000:c1:00.0");
}

TEST(FixedInventory, HasAnEnd) {
  std::string text;
  for (int id = 0; id < 100'000; ++id) text += "id=" + std::to_string(id % 1000) + " type=cpu\n";
  const auto devices = parse_fixed_inventory(text);
  ASSERT_FALSE(devices);
  EXPECT_LT(devices.error().message.size(), 10'000U);
}

}  // namespace
}  // namespace muster::agent::probe
