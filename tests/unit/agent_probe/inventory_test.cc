#include "agent/probe/inventory.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>

#include <deque>

#include "agent/probe/interfaces.h"
#include "common/base/label.h"

namespace muster::agent {
namespace {

TEST(Inventory, WhatTheNodeIs) {
  const v1::Inventory inventory =
      probe_inventory({.address = "10.1.2.3", .labels = {{"rack", "r1"}}});
  EXPECT_EQ(inventory.address(), "10.1.2.3");
  EXPECT_EQ(inventory.labels().at("rack"), "r1");
  EXPECT_GT(inventory.memory_bytes(), 1U << 20);
  EXPECT_FALSE(inventory.hostname().empty());
  EXPECT_EQ(inventory.devices_size(), 0);
}

TEST(Inventory, CpusAreTheCoresOfThisProcess) {
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
  const v1::Inventory inventory = probe_inventory({});
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(inventory.cpus(), 1U);
}

// A list as getifaddrs() returns it: one entry for each address.
class InterfaceList {
 public:
  InterfaceList& add(const std::string& name, const std::string& address, unsigned flags = IFF_UP) {
    Entry& entry = entries_.emplace_back();
    entry.name = name;
    entry.link.ifa_name = entry.name.data();
    entry.link.ifa_flags = flags;
    entry.link.ifa_addr = reinterpret_cast<sockaddr*>(&entry.address);
    entry.address.ss_family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
    if (address.empty()) entry.link.ifa_addr = nullptr;
    void* where =
        entry.address.ss_family == AF_INET
            ? static_cast<void*>(&reinterpret_cast<sockaddr_in&>(entry.address).sin_addr)
            : static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(entry.address).sin6_addr);
    EXPECT_TRUE(address.empty() || inet_pton(entry.address.ss_family, address.c_str(), where) == 1);
    if (entries_.size() > 1) entries_[entries_.size() - 2].link.ifa_next = &entry.link;
    return *this;
  }
  std::string text() const {
    std::string text;
    for (const auto& one : interfaces_of(entries_.empty() ? nullptr : &entries_.front().link)) {
      text += one.name();
      for (const auto& address : one.addresses()) text += " " + address;
      text += "; ";
    }
    return text;
  }

 private:
  struct Entry {
    std::string name;
    ifaddrs link{};
    sockaddr_storage address{};
  };
  std::deque<Entry> entries_;
};

TEST(Interfaces, ThatAreUpWithAddressesThatOthersReach) {
  InterfaceList list;
  list.add("lo", "127.0.0.1", IFF_UP | IFF_LOOPBACK)
      .add("enp61s0f0", "")
      .add("enp61s0f0", "fd00::5")
      .add("enp61s0f0", "10.1.1.5")
      .add("down0", "10.9.9.9", 0);
  list.add("bond0", "fe80::1").add("bond0", "192.168.7.5").add("ib0", "fe80::2");
  EXPECT_EQ(list.text(), "bond0 192.168.7.5; enp61s0f0 10.1.1.5 fd00::5; ");
}

TEST(Interfaces, LoopbackWhereThereIsNothingElse) {
  InterfaceList list;
  list.add("lo", "127.0.0.1", IFF_UP | IFF_LOOPBACK)
      .add("lo", "::1", IFF_UP | IFF_LOOPBACK)
      .add("eth0", "10.1.1.5", 0);
  EXPECT_EQ(list.text(), "lo 127.0.0.1 ::1; ");
  EXPECT_EQ(InterfaceList().text(), "");
}

TEST(Interfaces, NamesThatAreNoText) {
  InterfaceList list;
  list.add("e\xff\x01", "10.1.1.5");
  EXPECT_EQ(list.text(), "e?? 10.1.1.5; ");
}

// Routes may use interfaces without an address, too.
TEST(Links, ThatAreUpByTheirIndex) {
  sockaddr_ll number{};
  number.sll_family = AF_PACKET;
  number.sll_ifindex = 7;
  sockaddr_ll other = number;
  other.sll_ifindex = 3;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  char pod[] = "pod0", eth[] = "eth0", down[] = "down0";
  ifaddrs last{}, third{}, second{}, first{};
  last.ifa_name = down, last.ifa_addr = reinterpret_cast<sockaddr*>(&other);
  third.ifa_next = &last, third.ifa_name = eth, third.ifa_flags = IFF_UP,
  third.ifa_addr = reinterpret_cast<sockaddr*>(&address);
  second.ifa_next = &third, second.ifa_name = eth, second.ifa_flags = IFF_UP,
  second.ifa_addr = reinterpret_cast<sockaddr*>(&other);
  first.ifa_next = &second, first.ifa_name = pod, first.ifa_flags = IFF_UP,
  first.ifa_addr = reinterpret_cast<sockaddr*>(&number);
  const NetworkLinks links = links_of(&first);
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links.at(7).name, "pod0");
  EXPECT_FALSE(links.at(7).addressed);
  EXPECT_EQ(links.at(3).name, "eth0");
  EXPECT_TRUE(links.at(3).addressed);
}

TEST(Address, OfTheInterfaceThatRoutesToTheController) {
  const auto towards = [](const std::string& controller) {
    return Way::to(controller).value().local_address().value();
  };
  EXPECT_EQ(towards("127.0.0.1:7777"), "127.0.0.1");
  EXPECT_EQ(towards("127.9.9.9:7777"), "127.0.0.1")
      << "the kernel's choice, not the peer's address";
  EXPECT_EQ(towards("dns:///localhost:7777"), "127.0.0.1");
  EXPECT_EQ(towards("unix:/run/muster.sock"), "127.0.0.1");
}

TEST(Address, UnknownHostSaysWhatHelps) {
  const auto way = Way::to("no-such-host.invalid:1");
  ASSERT_FALSE(way);
  EXPECT_EQ(way.error().code, ErrorCode::Unreachable);
  EXPECT_NE(way.error().message.find("'no-such-host.invalid'"), std::string::npos);
  EXPECT_NE(way.error().message.find("--address"), std::string::npos);
}

TEST(Network, WhatIsReadAgainReplacesWhatWasThere) {
  v1::Inventory inventory = probe_inventory({.address = "10.1.2.3", .labels = {{"rack", "r1"}}});
  const v1::Inventory before = inventory;
  inventory.add_interfaces()->set_name("gone");
  read_network(inventory, nullptr);
  EXPECT_EQ(inventory.SerializeAsString(), before.SerializeAsString());
  const Way here = Way::to("unix:/x").value();
  read_network(inventory, &here);
  EXPECT_EQ(inventory.address(), "127.0.0.1");
  EXPECT_EQ(inventory.labels().at("rack"), "r1");
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
