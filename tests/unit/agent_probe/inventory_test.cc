#include "agent/probe/inventory.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace muster::agent {
namespace {

TEST(Inventory, FixedDevicesAndLabels) {
  const auto inventory = probe_inventory({.devices = 3, .address = "10.1.2.3", .controller = "unix:/x", .labels = {{"rack", "r1"}}});
  ASSERT_TRUE(inventory) << inventory.error().message;
  ASSERT_EQ(inventory->devices_size(), 3);
  EXPECT_EQ(inventory->devices(2).id(), 2U);
  EXPECT_EQ(inventory->devices(2).type(), "cpu");
  EXPECT_EQ(inventory->address(), "10.1.2.3");
  EXPECT_EQ(inventory->labels().at("rack"), "r1");
  EXPECT_GT(inventory->memory_bytes(), 1U << 20);
  EXPECT_FALSE(inventory->hostname().empty());
}

TEST(Inventory, NoDevicesIsAnInventoryOfItsOwn) {
  const auto inventory = probe_inventory({.devices = 0, .controller = "unix:/x"});
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->devices_size(), 0);
  EXPECT_GT(inventory->cpus(), 0U);
}

TEST(Inventory, DefaultIsTheCoresOfThisProcess) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const auto inventory = probe_inventory({.controller = "unix:/x"});
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->devices_size(), 1);
}

TEST(Address, OfTheInterfaceThatRoutesToTheController) {
  EXPECT_EQ(address_towards("127.0.0.1:7777").value(), "127.0.0.1");
  EXPECT_EQ(address_towards("127.9.9.9:7777").value(), "127.0.0.1") << "the kernel's choice, not the peer's address";
  EXPECT_EQ(address_towards("dns:///localhost:7777").value(), "127.0.0.1");
  EXPECT_EQ(address_towards("unix:/run/muster.sock").value(), "127.0.0.1");
}

TEST(Address, UnknownHostSaysWhatHelps) {
  const auto address = address_towards("no-such-host.invalid:1");
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code, ErrorCode::Unreachable);
  EXPECT_NE(address.error().message.find("'no-such-host.invalid'"), std::string::npos);
  EXPECT_NE(address.error().message.find("--address"), std::string::npos);
}

TEST(Label, GoodAndBad) {
  EXPECT_EQ(parse_label("rack=r1").value(), (std::pair<std::string, std::string>{"rack", "r1"}));
  EXPECT_EQ(parse_label("a/b.c=x=y").value().second, "x=y");
  EXPECT_EQ(parse_label("empty=").value().second, "");
  for (const std::string bad : {"rack", "=v", "-k=v", "k k=v", "k=a\nb", ""}) {
    const auto label = parse_label(bad);
    ASSERT_FALSE(label) << bad;
    EXPECT_EQ(label.error().code, ErrorCode::InvalidArgument);
  }
  EXPECT_FALSE(parse_label(std::string(64, 'k') + "=v"));
}

TEST(Boot, IdIsThere) { EXPECT_EQ(read_boot_id().value().str().size(), 36U); }

}  // namespace
}  // namespace muster::agent
