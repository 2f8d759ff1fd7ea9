#include "agent/probe/device_book.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::agent::probe {
namespace {

Device card(std::uint32_t id, std::string address = "") {
  Device device{.id = id,
                .physical_id = id + 4,
                .type = DeviceType::Ascend910b,
                .name = "910B3",
                .bus_id = "0000:c" + std::to_string(id) + ":00.0"};
  device.memory_total_mib = 65'536;
  if (!address.empty()) device.addresses = {address};
  return device;
}

Probed cards(std::uint32_t count) {
  Probed probe;
  for (std::uint32_t id = 0; id < count; ++id)
    probe.devices.push_back(card(id, "10.0.0." + std::to_string(id)));
  return probe;
}

Probed without(Probed probe, std::uint32_t id) {
  std::erase_if(probe.devices, [&](const Device& device) { return device.id == id; });
  return probe;
}

Probed failing() {
  return {.devices = {},
          .findings = {"npu-smi info gave no devices: it did not end within 5000 ms"}};
}

std::size_t announced(const DeviceBook& book) { return book.ids().size(); }

std::string text(const std::vector<v1::DeviceReading>& readings) {
  std::string all;
  for (const v1::DeviceReading& one : readings) {
    all += std::to_string(one.id()) + ":" + v1::DeviceHealth_Name(one.health()).substr(14);
    if (!one.health_text().empty()) all += " (" + one.health_text() + ")";
    for (const v1::DeviceOccupant& occupant : one.occupants())
      all += " " + std::to_string(occupant.pid()) + "/" + occupant.name() + "/" + occupant.user();
    all += "; ";
  }
  return all;
}

class Book : public testing::Test {
 protected:
  Book() {
    EXPECT_TRUE(book_.take(cards(3)));
    book_.announce();
    EXPECT_EQ(announced(book_), 3U);
  }
  DeviceBook book_;
};

TEST_F(Book, WhatIsAnnounced) {
  v1::Inventory inventory;
  book_.fill(inventory);
  ASSERT_EQ(inventory.devices_size(), 3);
  const v1::Device& device = inventory.devices(1);
  EXPECT_EQ(device.id(), 1U);
  EXPECT_EQ(device.type(), "ascend910b");
  EXPECT_EQ(device.model(), "910B3");
  EXPECT_EQ(device.physical_id(), 5U);
  EXPECT_EQ(device.bus_id(), "0000:c1:00.0");
  EXPECT_EQ(device.memory_bytes(), std::uint64_t{65'536} << 20U);
  EXPECT_EQ(device.addresses(0), "10.0.0.1");
  EXPECT_FALSE(device.has_numa_node());
  EXPECT_TRUE(inventory.probes_devices());
}

TEST_F(Book, ReadingsOfAProbe) {
  Probed probe = cards(3);
  probe.devices[1].health.add(HealthLevel::Warning, "its link is down");
  probe.devices[2].health.add(HealthLevel::Bad, "npu-smi says Alarm");
  probe.devices[2].memory_used_mib = 3'000;
  probe.devices[2].occupants = {
      {.pid = 4711, .name = "python", .user = "alice", .memory_mib = 20'000}};
  EXPECT_FALSE(book_.take(probe)) << "the devices are the same";
  EXPECT_EQ(text(book_.readings()),
            "0:OK; 1:WARNING (its link is down); 2:BAD (npu-smi says Alarm) 4711/python/alice; ");
  EXPECT_EQ(book_.readings()[2].memory_used_bytes(), std::uint64_t{3'000} << 20U);
  EXPECT_EQ(book_.readings()[2].occupants(0).memory_bytes(), std::uint64_t{20'000} << 20U);
  EXPECT_FALSE(book_.readings()[0].has_memory_used_bytes());
}

// Without this rule, a card that the tool did not show once would make the node smaller, and then
// larger again.
TEST_F(Book, ACardIsGoneWhenTwoProbesSaySo) {
  EXPECT_FALSE(book_.take(without(cards(3), 1)));
  EXPECT_EQ(text(book_.readings()), "0:OK; 1:BAD (the tools do not show it any more); 2:OK; ");
  EXPECT_FALSE(book_.take(cards(3))) << "it is there again";
  EXPECT_FALSE(book_.take(without(cards(3), 1)));
  EXPECT_FALSE(book_.take(without(cards(3), 2))) << "another one: the two looks do not agree";
  EXPECT_TRUE(book_.take(without(cards(3), 2)));
  EXPECT_TRUE(book_.take(without(cards(3), 2))) << "not announced yet";
  book_.announce();
  EXPECT_EQ(book_.ids(), (std::set<std::uint32_t>{0, 1}));
  EXPECT_FALSE(book_.take(without(cards(3), 2)));
  EXPECT_FALSE(book_.take(cards(3)));
  EXPECT_TRUE(book_.take(cards(3))) << "it came back";
  book_.announce();
  EXPECT_EQ(announced(book_), 3U);
}

TEST_F(Book, AToolThatFailsTakesNoDevicesAway) {
  for (int probe = 0; probe < 3; ++probe) EXPECT_FALSE(book_.take(failing()));
  EXPECT_EQ(announced(book_), 3U);
  const std::string why =
      "BAD (the tools do not show it: npu-smi info gave no devices: it did not end within 5000 "
      "ms); ";
  EXPECT_EQ(text(book_.readings()), "0:" + why + "1:" + why + "2:" + why);
  EXPECT_FALSE(book_.take(cards(3)));
  EXPECT_EQ(text(book_.readings()), "0:OK; 1:OK; 2:OK; ");
}

// An upgrade of the driver removed npu-smi: the node must not turn into CPU slots.
TEST_F(Book, ANodeWithCardsDoesNotTurnIntoCpuSlots) {
  Probed slots;
  slots.devices.resize(8);
  for (std::uint32_t id = 0; id < 8; ++id) slots.devices[id].id = id;
  for (int probe = 0; probe < 3; ++probe) EXPECT_FALSE(book_.take(slots));
  EXPECT_EQ(announced(book_), 3U);
  EXPECT_EQ(text(book_.readings()).find("OK"), std::string::npos) << text(book_.readings());
}

TEST_F(Book, WhatAProbeDoesNotReportIsKept) {
  Probed half = cards(3);
  for (Device& device : half.devices) {
    device.addresses.clear();
    device.bus_id.clear();
    device.memory_total_mib.reset();
    device.type = DeviceType::AscendOther;
  }
  for (int probe = 0; probe < 3; ++probe) EXPECT_FALSE(book_.take(half));
  EXPECT_EQ(text(book_.readings()), "0:OK; 1:OK; 2:OK; ");
}

TEST_F(Book, ACardThatWasExchangedIsAnother) {
  Probed probe = cards(3);
  probe.devices[1].bus_id = "0000:41:00.0";
  EXPECT_FALSE(book_.take(probe));
  EXPECT_EQ(text(book_.readings()), "0:OK; 1:BAD (the tools do not show it any more); 2:OK; ");
  EXPECT_TRUE(book_.take(probe));
}

TEST(DeviceBook, TheFirstDevicesThatAreSeenAreReportedAtOnce) {
  DeviceBook book;
  EXPECT_FALSE(book.take(failing()));
  book.announce();
  v1::Inventory inventory;
  book.fill(inventory);
  EXPECT_EQ(inventory.devices_size(), 0);
  EXPECT_FALSE(inventory.probes_devices());
  ASSERT_EQ(inventory.findings_size(), 1);
  EXPECT_EQ(inventory.findings(0), failing().findings[0]);
  EXPECT_TRUE(book.readings().empty());
  EXPECT_TRUE(book.take(cards(2)));
  book.announce();
  EXPECT_EQ(announced(book), 2U);
}

// What a book that knew `before` announces after a restart of the agent.
class RestoredBook : public testing::Test {
 protected:
  void restore(const Probed& before, bool this_boot) {
    DeviceBook earlier;
    EXPECT_TRUE(earlier.take(before));
    earlier.announce();
    v1::Inventory kept;
    earlier.fill(kept);
    book_.restore(kept, this_boot);
    EXPECT_TRUE(book_.restored());
    EXPECT_EQ(announced(book_), before.devices.size());
  }
  DeviceBook book_;
};

TEST_F(RestoredBook, TellsTheSameUntilAToolAnswers) {
  restore(cards(3), true);
  v1::Inventory inventory;
  book_.fill(inventory);
  EXPECT_TRUE(inventory.probes_devices()) << "nothing is placed before the first reading";
  EXPECT_FALSE(book_.take(failing()));
  EXPECT_TRUE(book_.restored()) << "that was no answer";
  EXPECT_EQ(announced(book_), 3U);
  EXPECT_FALSE(book_.take(cards(3)));
  EXPECT_FALSE(book_.restored());
  EXPECT_EQ(text(book_.readings()), "0:OK; 1:OK; 2:OK; ");
}

TEST_F(RestoredBook, OneProbeReplacesThem) {
  for (const bool this_boot : {true, false}) {
    book_ = DeviceBook();
    restore(cards(3), this_boot);
    EXPECT_TRUE(book_.take(without(cards(3), 1)));
    book_.announce();
    EXPECT_EQ(book_.ids(), (std::set<std::uint32_t>{0, 2}));
    EXPECT_FALSE(book_.take(cards(3))) << "from now on it takes two";
  }
}

TEST_F(RestoredBook, OtherFindingsAreReported) {
  restore(cards(2), true);
  Probed probe = cards(2);
  probe.findings = {"the table may not be whole"};
  EXPECT_TRUE(book_.take(probe));
  book_.announce();
  v1::Inventory inventory;
  book_.fill(inventory);
  ASSERT_EQ(inventory.findings_size(), 1);
  EXPECT_EQ(inventory.devices_size(), 2);
}

// Cards do not disappear while the machine is up. After a reboot, other cards may be in the same
// slots, with other addresses.
TEST_F(RestoredBook, OfAnotherBootNothingIsKept) {
  Probed slots, bare = cards(2);
  slots.devices.resize(2);
  slots.devices[1].id = 1;
  for (Device& device : bare.devices) device.addresses.clear();
  for (const bool this_boot : {true, false}) {
    book_ = DeviceBook();
    restore(cards(2), this_boot);
    EXPECT_EQ(book_.take(bare), !this_boot);
    book_ = DeviceBook();
    restore(cards(2), this_boot);
    EXPECT_EQ(book_.take(slots), !this_boot) << "a tool that is gone";
  }
}

TEST(DeviceBook, CpuSlotsAreNotProbed) {
  DeviceBook book;
  Probed slots;
  slots.devices.resize(2);
  slots.devices[1].id = 1;
  EXPECT_TRUE(book.take(slots));
  book.announce();
  v1::Inventory inventory;
  book.fill(inventory);
  EXPECT_FALSE(inventory.probes_devices());
  EXPECT_FALSE(inventory.devices(0).has_physical_id());
  EXPECT_TRUE(book.readings().empty());
  EXPECT_FALSE(book.take(cards(2)));
  EXPECT_TRUE(book.take(cards(2))) << "a driver was installed";
}

TEST(DeviceBook, WhatToolsSayHasBounds) {
  Probed probe = cards(1);
  probe.devices[0].health.add(HealthLevel::Warning, std::string(10'000, 'x'));
  for (int pid = 1; pid <= 1'000; ++pid) probe.devices[0].occupants.push_back({.pid = pid});
  for (int at = 0; at < 1'000; ++at) probe.findings.push_back(std::string(10'000, 'y'));
  DeviceBook book;
  EXPECT_TRUE(book.take(probe));
  book.announce();
  v1::Inventory inventory;
  book.fill(inventory);
  ASSERT_EQ(inventory.findings_size(), static_cast<int>(kFindingsMax));
  EXPECT_EQ(inventory.findings(0).size(), kFindingBytesMax + 3);
  EXPECT_EQ(book.readings()[0].health_text().size(), kFindingBytesMax + 3);
  EXPECT_EQ(book.readings()[0].occupants_size(), static_cast<int>(kReadingOccupantsMax));
}

}  // namespace
}  // namespace muster::agent::probe
