#include "client/render/device_text.h"

#include <gtest/gtest.h>

namespace muster::render {
namespace {

constexpr Style kPlain{};

v1::Device& add_card(v1::Node& node, std::uint32_t id, const std::string& type = "ascend910b") {
  v1::Device& device = *node.mutable_inventory()->add_devices();
  device.set_id(id);
  device.set_type(type);
  if (type == "cpu") return device;
  device.set_physical_id(id);
  device.set_model("910B3");
  device.set_bus_id("0000:c1:00." + std::to_string(id));
  device.set_memory_bytes(std::uint64_t{65'536} << 20U);
  device.add_addresses("10.0.0." + std::to_string(id));
  return device;
}
v1::DeviceReading& add_reading(v1::Node& node, std::uint32_t id, v1::DeviceHealth health) {
  v1::DeviceReading& reading = *node.add_readings();
  reading.set_id(id);
  reading.set_health(health);
  return reading;
}
std::string table(const v1::Node& node, bool wide = true) {
  return to_text(device_table(node, kPlain, wide), kPlain, 0);
}

TEST(DeviceText, ATableSaysAllThatIsKnown) {
  v1::Node node;
  for (std::uint32_t id = 0; id < 4; ++id) add_card(node, id);
  node.mutable_inventory()->mutable_devices(1)->set_numa_node(3);
  node.mutable_inventory()->mutable_devices(1)->set_physical_id(5);
  node.mutable_inventory()->mutable_devices(2)->set_super_pod_id("0");
  node.mutable_inventory()->mutable_devices(2)->set_super_device_id("16777216");
  add_reading(node, 0, v1::DEVICE_HEALTH_OK).set_memory_used_bytes(std::uint64_t{3'386} << 20U);
  v1::DeviceUse& use = *node.add_uses();
  use.set_device(0);
  use.set_job_id("k3f9");
  use.set_job_name("llama");
  use.set_attempt(2);
  add_reading(node, 1, v1::DEVICE_HEALTH_WARNING).set_health_text("its link is down");
  v1::DeviceReading& busy = add_reading(node, 2, v1::DEVICE_HEALTH_OK);
  for (const std::uint64_t pid : {4711U, 4712U}) busy.add_occupants()->set_pid(pid);
  busy.mutable_occupants(0)->set_name("python\x1b[2J");
  busy.mutable_occupants(0)->set_user("alice");
  add_reading(node, 3, v1::DEVICE_HEALTH_BAD).set_health_text("npu-smi says Alarm\n80E01801");
  EXPECT_EQ(
      table(node),
      R"(DEVICE  PHYSICAL  TYPE        MODEL  HEALTH         MEMORY  NUMA  BUS           ADDRESS   SUPER-POD   IN USE BY
     0         -  ascend910b  910B3  ok       3.3/64.0 GiB     -  0000:c1:00.0  10.0.0.0  -           llama (k3f9, attempt 2)
     1         5  ascend910b  910B3  warning    ?/64.0 GiB     3  0000:c1:00.1  10.0.0.1  -           free
     2         -  ascend910b  910B3  ok         ?/64.0 GiB     -  0000:c1:00.2  10.0.0.2  0:16777216  pid 4711 (alice, python?[2J) and 1 more
     3         -  ascend910b  910B3  bad        ?/64.0 GiB     -  0000:c1:00.3  10.0.0.3  -           -
)");
  EXPECT_EQ(table(node, false).find("0000:c1"), std::string::npos);
  EXPECT_EQ(health_text(node, kPlain), "1 bad, 1 warning, 1 occupied");
  EXPECT_EQ(trouble_text(node.readings(0)), "");
  EXPECT_EQ(trouble_text(node.readings(1)), "device 1: its link is down");
  EXPECT_EQ(trouble_text(node.readings(3)).find('\n'), std::string::npos);
}

TEST(DeviceText, CpuSlotsHaveNoEmptyColumns) {
  v1::Node node;
  for (std::uint32_t id = 0; id < 2; ++id) add_card(node, id, "cpu");
  EXPECT_EQ(table(node), "DEVICE  TYPE  IN USE BY\n     0  cpu   free\n     1  cpu   free\n");
  EXPECT_EQ(devices_text(node), "2 cpu");
  EXPECT_EQ(health_text(node, kPlain), "-");
}

TEST(DeviceText, Marks) {
  v1::Node node;
  EXPECT_EQ(devices_text(node), "none");
  EXPECT_EQ(health_text(node, kPlain), "-");
  node.mutable_inventory()->add_findings(
      "npu-smi info gave no devices: it did not end within 5000 ms");
  EXPECT_EQ(health_text(node, kPlain), "not seen");
  add_card(node, 0);
  add_card(node, 1);
  add_card(node, 2, "cpu");
  EXPECT_EQ(devices_text(node), "2 ascend910b and 1 cpu");
  EXPECT_EQ(health_text(node, kPlain), "-") << "away, or nobody has looked";
  add_reading(node, 0, v1::DEVICE_HEALTH_OK);
  EXPECT_EQ(health_text(node, kPlain), "ok");
  add_reading(node, 1, v1::DEVICE_HEALTH_WARNING);
  EXPECT_EQ(health_text(node, kPlain), "1 warning");
  node.mutable_readings(0)->set_health(v1::DEVICE_HEALTH_WARNING);
  EXPECT_EQ(health_text(node, kPlain), "2 warnings");
}

}  // namespace
}  // namespace muster::render
