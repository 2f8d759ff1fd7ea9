#include "agent/probe/routes.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

using Bytes = std::span<const std::byte>;

constexpr const char* kDoing = "asking the kernel for its routes";
constexpr std::size_t kDatagramMax = 64 << 10;  // the kernel sends at most 32 KiB

// NLMSG_ALIGN, RTA_ALIGN, RTNH_ALIGN
constexpr std::size_t aligned(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

// Returns the head of the remaining bytes, if they are complete according to its own `length`.
template <class Head, class Size>
std::optional<Head> head_of(Bytes left, Size Head::* length) {
  Head head{};
  if (left.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, left.data(), sizeof(head));
  const auto size = static_cast<std::size_t>(head.*length);
  return size >= sizeof(head) && size <= left.size() ? std::optional(head) : std::nullopt;
}
Bytes behind(Bytes left, std::size_t size) {
  return left.subspan(std::min(aligned(size), left.size()));
}

std::optional<std::uint32_t> number(Bytes value) {
  std::uint32_t number = 0;
  if (value.size() != sizeof(number)) return std::nullopt;
  std::memcpy(&number, value.data(), sizeof(number));
  return number;
}

// Calls visit(type, value) for each complete attribute.
template <class Visit>
void each_attribute(Bytes left, const Visit& visit) {
  while (const auto head = head_of(left, &rtattr::rta_len)) {
    visit(static_cast<std::uint16_t>(head->rta_type & NLA_TYPE_MASK),
          left.subspan(sizeof(rtattr), head->rta_len - sizeof(rtattr)));
    left = behind(left, head->rta_len);
  }
}

struct Address {
  bool v6 = false;
  std::array<std::byte, 16> bytes{};

  [[nodiscard]] std::string text() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    return ::inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), text.data(), text.size()) == nullptr
               ? std::string()
               : std::string(text.data());
  }
  [[nodiscard]] unsigned first() const { return std::to_integer<unsigned>(bytes[0]); }
  [[nodiscard]] bool link_local() const {
    return v6 && first() == 0xFE && (std::to_integer<unsigned>(bytes[1]) & 0xC0U) == 0x80;
  }
  [[nodiscard]] bool multicast() const { return v6 ? first() == 0xFF : first() >> 4U == 0xE; }
  [[nodiscard]] bool loopback() const { return !v6 && first() == 127; }
};

std::optional<Address> address_of(Bytes value, bool v6) {
  if (value.size() != (v6 ? 16U : 4U)) return std::nullopt;
  Address address{.v6 = v6};
  std::memcpy(address.bytes.data(), value.data(), value.size());
  return address;
}

}  // namespace

struct RouteDump::Way {
  unsigned link = 0;
  bool gateway = false;

  // Returns the first hop of RTA_MULTIPATH through an interface of `links`.
  static std::optional<Way> of_several(Bytes left, const NetworkLinks& links) {
    while (const auto hop = head_of(left, &rtnexthop::rtnh_len)) {
      const auto index = static_cast<unsigned>(hop->rtnh_ifindex);
      if (links.contains(index) && (hop->rtnh_flags & RTNH_F_DEAD) == 0) {
        Way way{.link = index};
        each_attribute(left.subspan(sizeof(rtnexthop), hop->rtnh_len - sizeof(rtnexthop)),
                       [&](std::uint16_t type, Bytes) {
                         way.gateway = way.gateway || type == RTA_GATEWAY || type == RTA_VIA;
                       });
        return way;
      }
      left = behind(left, hop->rtnh_len);
    }
    return std::nullopt;
  }
};

void RouteDump::add(Bytes message) {
  rtmsg about{};
  if (message.size() < sizeof(about)) return;
  std::memcpy(&about, message.data(), sizeof(about));
  const bool v6 = about.rtm_family == AF_INET6;
  if (!v6 && about.rtm_family != AF_INET) return;
  if (about.rtm_type != RTN_UNICAST || about.rtm_src_len != 0 || about.rtm_tos != 0 ||
      (about.rtm_flags & (RTM_F_CLONED | RTNH_F_DEAD)) != 0)
    return;
  Address destination{.v6 = v6};
  bool has_destination = about.rtm_dst_len == 0, has_metric = true;
  std::uint32_t table = about.rtm_table;
  std::optional<Way> several;
  Way way;
  Route route{.bits = about.rtm_dst_len, .v6 = v6};
  each_attribute(behind(message, sizeof(about)), [&](std::uint16_t type, Bytes value) {
    switch (type) {
      case RTA_DST:
        if (const auto address = address_of(value, v6))
          destination = *address, has_destination = true;
        break;
      case RTA_PREFSRC:
        if (const auto address = address_of(value, v6); address && !address->link_local())
          route.source = address->text();
        break;
      case RTA_OIF: way.link = number(value).value_or(0); break;
      case RTA_GATEWAY:
      case RTA_VIA: way.gateway = true; break;
      case RTA_MULTIPATH: several = Way::of_several(value, links_); break;
      case RTA_PRIORITY:
        route.metric = number(value).value_or(0);
        has_metric = value.size() == sizeof(std::uint32_t);
        break;
      case RTA_TABLE: table = number(value).value_or(RT_TABLE_UNSPEC); break;
    }
  });
  if (table != RT_TABLE_MAIN || !has_destination || !has_metric || route.bits > (v6 ? 128U : 32U))
    return;
  if (destination.link_local() || destination.multicast() || destination.loopback()) return;
  if (several) way = *several;
  const auto link = links_.find(way.link);
  if (link == links_.end()) return;
  const bool one_host = route.bits == (v6 ? 128U : 32U);
  if (one_host && !link->second.addressed && route.source.empty()) return;
  route.gateway = way.gateway;
  route.destination = destination.text();
  route.interface = link->second.name;
  found_.insert(std::move(route));
}

// The head of a rule is that of a route, with the action instead of the type (linux/fib_rules.h).
void RouteDump::add_rule(Bytes message) {
  fib_rule_hdr about{};
  if (message.size() < sizeof(about)) return;
  std::memcpy(&about, message.data(), sizeof(about));
  std::uint32_t table = about.table;
  // of_some: the rule concerns only packets that a program without a bound address or interface
  // does not send
  bool of_some = about.src_len != 0, of_vrf = false;
  each_attribute(behind(message, sizeof(about)), [&](std::uint16_t type, Bytes value) {
    switch (type) {
      case FRA_TABLE: table = number(value).value_or(RT_TABLE_UNSPEC); break;
      case FRA_FWMARK: of_some = of_some || number(value).value_or(0) != 0; break;
      case FRA_IIFNAME:
        of_some = of_some || std::string_view(reinterpret_cast<const char*>(value.data()),
                                              value.size()) != std::string_view("lo", 3);
        break;
      case FRA_L3MDEV: of_vrf = true; break;
    }
  });
  const bool known =
      about.action == FR_ACT_TO_TBL &&
      (table == RT_TABLE_LOCAL || table == RT_TABLE_MAIN || table == RT_TABLE_DEFAULT);
  const bool passes =
      about.action == FR_ACT_NOP || (of_some && (about.flags & FIB_RULE_INVERT) == 0) || of_vrf;
  if (!known && !passes) other_tables_ = true;
}

RouteDump::Then RouteDump::take(Bytes datagram) {
  if (datagram.empty()) return Then::Failed;
  while (!datagram.empty()) {
    const auto head = head_of(datagram, &nlmsghdr::nlmsg_len);
    if (!head || head->nlmsg_type == NLMSG_ERROR) return Then::Failed;
    if (head->nlmsg_type == NLMSG_DONE) return Then::End;
    if (head->nlmsg_type == RTM_NEWROUTE) {
      if (++seen_ > kRoutesRead) return Then::End;
      add(datagram.subspan(sizeof(nlmsghdr), head->nlmsg_len - sizeof(nlmsghdr)));
    }
    if (head->nlmsg_type == RTM_NEWRULE)
      add_rule(datagram.subspan(sizeof(nlmsghdr), head->nlmsg_len - sizeof(nlmsghdr)));
    datagram = behind(datagram, head->nlmsg_len);
  }
  return Then::More;
}

Routes RouteDump::routes() const {
  Routes result{.cut = found_.size() > kRoutesMax || seen_ > kRoutesRead || other_tables_};
  for (const Route& one : found_) {
    if (result.routes.size() == kRoutesMax) break;
    v1::NetworkRoute& route = result.routes.emplace_back();
    route.set_destination(fmt::format("{}/{}", one.destination, one.bits));
    route.set_interface(one.interface);
    route.set_source(one.source);
    route.set_metric(one.metric);
    route.set_connected(!one.gateway);
  }
  return result;
}

namespace {

// Reads all routes or rules (`what`) of one family. A kernel without IPv6 reports an error for
// IPv6.
Result<void> dump(int socket, std::uint16_t what, unsigned char family, RouteDump& into) {
  struct Request {
    nlmsghdr head;
    rtmsg about;
    rtattr table_head;
    std::uint32_t table;
  } request{};
  static_assert(sizeof(request) == sizeof(nlmsghdr) + sizeof(rtmsg) + sizeof(rtattr) + 4,
                "as the kernel reads it, without gaps");
  static_assert(sizeof(rtmsg) == sizeof(fib_rule_hdr));
  request.head.nlmsg_len = what == RTM_GETROUTE ? sizeof(request) : offsetof(Request, table_head);
  request.head.nlmsg_type = what;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.about.rtm_family = family;
  request.table_head = {.rta_len = sizeof(rtattr) + sizeof(request.table), .rta_type = RTA_TABLE};
  request.table = RT_TABLE_MAIN;
  if (::send(socket, &request, request.head.nlmsg_len, 0) < 0) return fail_errno(kDoing, errno);
  std::vector<std::byte> datagram(kDatagramMax);
  for (;;) {
    const ssize_t size = ::recv(socket, datagram.data(), datagram.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno(kDoing, errno);
    if (into.take(Bytes(datagram).first(static_cast<std::size_t>(size))) != RouteDump::Then::More)
      return {};
  }
}

}  // namespace

Result<Routes> read_routes(const NetworkLinks& links) {
  RouteDump found(links);
  using Asked = std::pair<std::uint16_t, unsigned char>;
  for (const auto& [what, family] : {Asked(RTM_GETROUTE, AF_INET), Asked(RTM_GETROUTE, AF_INET6),
                                     Asked(RTM_GETRULE, AF_INET), Asked(RTM_GETRULE, AF_INET6)}) {
    // One socket for each dump: closing it drops the rest of a dump that was not read to its end.
    const io::UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (!socket) return fail_errno(kDoing, errno);
    const timeval bound{.tv_sec = 1, .tv_usec = 0};
    const int strict = 1;
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound)) != 0)
      return fail_errno(kDoing, errno);
    // With this option the kernel lists only the main table. An older kernel lists all tables, and
    // the others are skipped.
    (void)::setsockopt(socket.get(), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &strict, sizeof(strict));
    if (auto read = dump(socket.get(), what, family, found); !read)
      return fail(std::move(read).error());
  }
  return found.routes();
}

}  // namespace muster::agent
