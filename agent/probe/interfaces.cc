#include "agent/probe/interfaces.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/probe/text.h"

namespace muster::agent {
namespace {

constexpr std::size_t kInterfacesMax = 64, kAddressesMax = 16;

std::optional<std::string> address_text(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    const auto& own = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    if (::inet_ntop(AF_INET, &own, text.data(), text.size()) == nullptr) return std::nullopt;
    return text.data();
  }
  if (address.sa_family != AF_INET6) return std::nullopt;
  const auto& own = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_LINKLOCAL(&own) ||
      ::inet_ntop(AF_INET6, &own, text.data(), text.size()) == nullptr)
    return std::nullopt;
  return text.data();
}

}  // namespace

std::vector<v1::NetworkInterface> interfaces_of(const ifaddrs* list) {
  struct Addresses {
    std::vector<std::string> v4, v6;
  };
  std::map<std::string, Addresses> real, loopback;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_name == nullptr || one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0)
      continue;
    const auto address = address_text(*one->ifa_addr);
    if (!address) continue;
    Addresses& addresses =
        ((one->ifa_flags & IFF_LOOPBACK) != 0 ? loopback
                                              : real)[probe::clean(one->ifa_name, IFNAMSIZ)];
    (one->ifa_addr->sa_family == AF_INET ? addresses.v4 : addresses.v6).push_back(*address);
  }
  std::vector<v1::NetworkInterface> interfaces;
  for (const auto& [name, addresses] : real.empty() ? loopback : real) {
    if (interfaces.size() == kInterfacesMax) break;
    v1::NetworkInterface& shown = interfaces.emplace_back();
    shown.set_name(name);
    for (const auto* kind : {&addresses.v4, &addresses.v6}) {
      for (const std::string& address : *kind) {
        if (static_cast<std::size_t>(shown.addresses_size()) < kAddressesMax)
          shown.add_addresses(address);
      }
    }
  }
  return interfaces;
}

NetworkLinks links_of(const ifaddrs* list) {
  NetworkLinks links;
  std::set<std::string> addressed;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_name == nullptr || one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 ||
        (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    const std::string name = probe::clean(one->ifa_name, IFNAMSIZ);
    if (one->ifa_addr->sa_family == AF_PACKET)
      links[static_cast<unsigned>(reinterpret_cast<const sockaddr_ll&>(*one->ifa_addr).sll_ifindex)]
          .name = name;
    else if (address_text(*one->ifa_addr))
      addressed.insert(name);
  }
  for (auto& [_, link] : links) link.addressed = addressed.contains(link.name);
  return links;
}

namespace {

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

Interfaces all_interfaces() {
  ifaddrs* list = nullptr;
  return {::getifaddrs(&list) == 0 ? list : nullptr, &::freeifaddrs};
}

}  // namespace

std::vector<v1::NetworkInterface> network_interfaces() {
  return interfaces_of(all_interfaces().get());
}
NetworkLinks network_links() { return links_of(all_interfaces().get()); }

}  // namespace muster::agent
