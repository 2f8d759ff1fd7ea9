// The kernel's routes: its messages as recorded, cut off, damaged and in great numbers; and a dump
// of this machine's own routes.
#include "agent/probe/routes.h"

#include <gmock/gmock.h>
#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "agent/probe/interfaces.h"

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Then = RouteDump::Then;

// Recorded in a network namespace (Linux 6.18), a message an `ip route add`, without what has no
// part in it:
//   default via 10.78.0.254 dev train metric 50
//   default via 10.77.0.1 dev ctl metric 100
//   (10.77.0.2/30 dev ctl)
//   10.77.9.9 via 10.77.0.1
//   (10.78.0.1/24 dev train)
//   10.90.0.0/16 metric 7 nexthop via 10.78.0.254 dev train nexthop via 10.77.0.1 dev ctl
//   10.91.0.0/16 via inet6 fd00:78::9 dev train
//   10.92.0.5 dev pod0 src 10.78.0.1
//   blackhole 10.99.0.0/16
//   10.244.0.7 dev pod0
constexpr const char* kV4 =
    "3c00000018002200000000008e09000002000000fe0300010000000008000f00fe0000000800060032000000080005"
    "000a4e00fe08000400050000003c00000018002200000000008e09000002000000fe0300010000000008000f00fe00"
    "00000800060064000000080005000a4d000108000400030000003c00000018002200000000008e090000021e0000fe"
    "02fd010000000008000f00fe000000080001000a4d0000080007000a4d000208000400030000003c00000018002200"
    "000000008e09000002200000fe0300010000000008000f00fe000000080001000a4d0909080005000a4d0001080004"
    "00030000003c00000018002200000000008e09000002180000fe02fd010000000008000f00fe000000080001000a4e"
    "0000080007000a4e000108000400050000005800000018002200000000008e09000002100000fe0300010000000008"
    "000f00fe000000080001000a5a00000800060007000000240009001000000005000000080005000a4e00fe10000000"
    "03000000080005000a4d00014c00000018002200000000008e09000002100000fe0300010000000008000f00fe0000"
    "00080001000a5b0000160012000a00fd000078000000000000000000000009000008000400050000003c0000001800"
    "2200000000008e09000002200000fe03fd010000000008000f00fe000000080001000a5c0005080007000a4e000108"
    "000400070000002c00000018002200000000008e09000002100000fe0300060000000008000f00fe00000008000100"
    "0a6300003400000018002200000000008e09000002200000fe03fd010000000008000f00fe000000080001000af400"
    "070800040007000000";
//   (fd00:77::2/64 dev ctl)    fd00:90::/32 metric 20 nexthop via fd00:78::9 dev train nexthop via
//                              fd00:77::1 dev ctl (fe80::/64 dev ctl)
//   (fd00:78::1/64 dev train)  unreachable fd00:99::/32 default via fd00:77::1 dev ctl
constexpr const char* kV6 =
    "7400000018002200000000008e0900000a400000fe0200010000000008000f00fe00000014000100fd000077000000"
    "0000000000000000000800060000010000080004000300"
    "000024000c0000000000000000000000000000000000000000000000000000000000000000000500140000000000"
    "7400000018002200000000008e0900000a400000fe0200010000000008000f00fe00000014000100fd000078000000"
    "0000000000000000000800060000010000080004000500"
    "000024000c0000000000000000000000000000000000000000000000000000000000000000000500140000000000"
    "a800000018002200000000008e0900000a200000fe0300010000000008000f00fe00000014000100fd000090000000"
    "00000000000000000008000600140000003c0009001c00"
    "00000500000014000500fd0000780000000000000000000000091c0000000300000014000500fd0000770000000000"
    "0000000000000124000c00000000000000000000000000"
    "00000000000000000000000000000000000000000500140000000000"
    "7400000018002200000000008e0900000a200000fe0300070000000008000f00fe00000014000100fd000099000000"
    "0000000000000000000800060000040000080004000100"
    "000024000c0000000000000000000000000000000000000000000000000000000000000000000500140000000000"
    "7400000018002200000000008e0900000a400000fe0200010000000008000f00fe00000014000100fe800000000000"
    "0000000000000000000800060000010000080004000300"
    "000024000c0000000000000000000000000000000000000000000000000000000000000000000500140000000000"
    "7400000018002200000000008e0900000a000000fe0300010000000008000f00fe0000000800060000040000140005"
    "00fd000077000000000000000000000001080004000300"
    "000024000c0000000000000000000000000000000000000000000000000000000000000000000500140000000000";
constexpr const char* kDone = "1400000003002200000000008e09000000000000";

const NetworkLinks kLinks = {{3, {.name = "ctl", .addressed = true}},
                             {5, {.name = "train", .addressed = true}},
                             {7, {.name = "pod0"}}};

std::vector<std::byte> bytes(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16)));
  return bytes;
}

std::vector<std::string> texts(const Routes& routes) {
  std::vector<std::string> texts;
  for (const v1::NetworkRoute& one : routes.routes) {
    std::string& text = texts.emplace_back(one.destination() + (one.connected() ? " on " : " by ") +
                                           one.interface());
    if (!one.source().empty()) text += " src " + one.source();
    if (one.metric() != 0) text += " metric " + std::to_string(one.metric());
  }
  return texts;
}

TEST(Routes, AsAKernelTellsThem) {
  RouteDump dump(kLinks);
  EXPECT_EQ(dump.take(bytes(kV4)), Then::More);
  EXPECT_EQ(dump.take(bytes(kDone)), Then::End);
  EXPECT_EQ(dump.take(bytes(std::string(kV6) + kDone)), Then::End);
  EXPECT_THAT(
      texts(dump.routes()),
      ElementsAre("10.78.0.0/24 on train src 10.78.0.1", "10.77.0.0/30 on ctl src 10.77.0.2",
                  "10.92.0.5/32 on pod0 src 10.78.0.1", "fd00:77::/64 on ctl metric 256",
                  "fd00:78::/64 on train metric 256", "0.0.0.0/0 by train metric 50",
                  "0.0.0.0/0 by ctl metric 100", "::/0 by ctl metric 1024",
                  "10.90.0.0/16 by train metric 7", "10.91.0.0/16 by train", "10.77.9.9/32 by ctl",
                  "fd00:90::/32 by train metric 20"))
      << "no blackhole, nothing link-local, no container of this host";
  EXPECT_FALSE(dump.routes().cut);
}

TEST(Routes, OfSeveralWaysTheFirstThatIsUp) {
  const NetworkLinks without_train = {{3, {.name = "ctl", .addressed = true}}};
  RouteDump dump(without_train);
  EXPECT_EQ(dump.take(bytes(std::string(kV4) + kDone)), Then::End);
  EXPECT_THAT(texts(dump.routes()),
              ElementsAre("10.77.0.0/30 on ctl src 10.77.0.2", "0.0.0.0/0 by ctl metric 100",
                          "10.90.0.0/16 by ctl metric 7", "10.77.9.9/32 by ctl"));
}

TEST(Routes, OtherTablesAreNotRead) {
  std::string other = kV4;
  for (std::size_t at = 0; (at = other.find("08000f00fe", at)) != std::string::npos;)
    other.replace(at, 10, "08000f0064");
  RouteDump dump(kLinks);
  EXPECT_EQ(dump.take(bytes(other)), Then::More);
  EXPECT_THAT(dump.routes().routes, IsEmpty());
}

// For any input: no read beyond its end (the sanitizers check this), and no route that the input
// does not contain.
TEST(Routes, CutOffOrDamagedAnywhere) {
  const std::vector<std::byte> whole = bytes(std::string(kV4) + kV6);
  RouteDump all(kLinks);
  ASSERT_EQ(all.take(whole), Then::More);
  const std::vector<std::string> known = texts(all.routes());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    RouteDump dump(kLinks);
    const Then then =
        dump.take(std::vector(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    for (const std::string& one : texts(dump.routes()))
      EXPECT_THAT(known, testing::Contains(one)) << size;
    EXPECT_TRUE(then == Then::More || then == Then::Failed);
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned char value : {0x00, 0x01, 0x7F, 0xFF}) {
      std::vector<std::byte> damaged = whole;
      damaged[at] = static_cast<std::byte>(value);
      RouteDump dump(kLinks);
      (void)dump.take(damaged);
      EXPECT_LE(dump.routes().routes.size(), kRoutesMax);
    }
  }
}

TEST(Routes, AnErrorIsNone) {
  nlmsgerr error{.error = -ENOENT, .msg = {}};
  nlmsghdr head{.nlmsg_len = sizeof(head) + sizeof(error),
                .nlmsg_type = NLMSG_ERROR,
                .nlmsg_flags = 0,
                .nlmsg_seq = 0,
                .nlmsg_pid = 0};
  std::vector<std::byte> message(head.nlmsg_len);
  std::memcpy(message.data(), &head, sizeof(head));
  std::memcpy(message.data() + sizeof(head), &error, sizeof(error));
  RouteDump dump(kLinks);
  EXPECT_EQ(dump.take(message), Then::Failed);
  EXPECT_EQ(dump.take({}), Then::Failed);
}

// 10.H.L.0/24 through a gateway: what a router has, or a node of a large container network.
std::vector<std::byte> routed(std::size_t number) {
  constexpr std::string_view kOne =
      "3c00000018002200000000008e09000002180000fe0300010000000008000f00fe000000080001000aHHLL000800"
      "05000a4d00010800040003000000";
  std::string hex(kOne);
  const auto put = [&](const char* mark, std::size_t value) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex.replace(hex.find(mark), 2, {kDigits[value / 16 % 16], kDigits[value % 16]});
  };
  put("HH", number / 256);
  put("LL", number % 256);
  return bytes(hex);
}

TEST(Routes, BeyondTheBoundTheNarrowestAreLeftOut) {
  RouteDump dump(kLinks);
  for (std::size_t number = 0; number < 100; ++number)
    ASSERT_EQ(dump.take(routed(number)), Then::More);
  EXPECT_EQ(dump.take(bytes(std::string(kV4) + kDone)), Then::End);
  const Routes routes = dump.routes();
  EXPECT_TRUE(routes.cut);
  ASSERT_EQ(routes.routes.size(), kRoutesMax);
  EXPECT_EQ(texts(routes).front(), "10.78.0.0/24 on train src 10.78.0.1");
  EXPECT_THAT(texts(routes), testing::Contains("0.0.0.0/0 by train metric 50"));
  EXPECT_THAT(texts(routes), testing::Not(testing::Contains("10.77.9.9/32 by ctl")));
}

TEST(Routes, ARoutersAreNotAllRead) {
  RouteDump dump(kLinks);
  for (std::size_t number = 0; number < kRoutesRead; ++number)
    ASSERT_EQ(dump.take(routed(number % 50)), Then::More);
  EXPECT_FALSE(dump.routes().cut) << "fifty, told again and again";
  EXPECT_EQ(dump.take(routed(0)), Then::End);
  EXPECT_TRUE(dump.routes().cut);
}

// `ip rule`, as linux/fib_rules.h has it.
struct Rule {
  std::uint32_t table = 52;
  std::vector<std::pair<std::uint16_t, std::string>> more;  // attributes
  unsigned char action = FR_ACT_TO_TBL, source_bits = 0;
  std::uint32_t flags = 0;
};

std::string word(std::uint32_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

std::vector<std::byte> message(const Rule& rule, std::uint16_t flags = 0) {
  fib_rule_hdr about{};
  about.family = AF_INET;
  about.src_len = rule.source_bits;
  about.action = rule.action;
  about.flags = rule.flags;
  std::string body(reinterpret_cast<const char*>(&about), sizeof(about));
  const auto attribute = [&](std::uint16_t type, const std::string& value) {
    const rtattr head{.rta_len = static_cast<std::uint16_t>(sizeof(rtattr) + value.size()),
                      .rta_type = type};
    body.append(reinterpret_cast<const char*>(&head), sizeof(head))
        .append(value)
        .resize((body.size() + 3) / 4 * 4);
  };
  attribute(FRA_TABLE, word(rule.table));
  for (const auto& [type, value] : rule.more) attribute(type, value);
  const nlmsghdr head{.nlmsg_len = static_cast<std::uint32_t>(sizeof(nlmsghdr) + body.size()),
                      .nlmsg_type = RTM_NEWRULE,
                      .nlmsg_flags = flags,
                      .nlmsg_seq = 0,
                      .nlmsg_pid = 0};
  std::vector<std::byte> message(head.nlmsg_len);
  std::memcpy(message.data(), &head, sizeof(head));
  std::memcpy(message.data() + sizeof(head), body.data(), body.size());
  return message;
}

TEST(Routes, RulesThatChooseAnotherTableForAnyPacketAreReported) {
  struct Row {
    const char* what;
    Rule rule;
    bool cut;
  };
  const std::string eth0("eth0", 5), lo("lo", 3);
  for (const Row& row : {
           Row{"from all lookup local", {.table = RT_TABLE_LOCAL}, false},
           Row{"from all lookup main", {.table = RT_TABLE_MAIN}, false},
           Row{"from all lookup default", {.table = RT_TABLE_DEFAULT}, false},
           Row{"from all lookup 52", {}, true},
           Row{"from all lookup 10000", {.table = 10'000}, true},
           Row{"from 10.1.0.5 lookup 52",
               {.more = {{FRA_SRC, word(0x0500010A)}}, .source_bits = 32},
               false},
           Row{"from all fwmark 0x80000/0xff0000 lookup 52",
               {.more = {{FRA_FWMARK, word(0x80000)}, {FRA_FWMASK, word(0xFF0000)}}},
               false},
           Row{"not from all fwmark 0xca6c lookup 52",
               {.more = {{FRA_FWMARK, word(0xCA6C)}}, .flags = FIB_RULE_INVERT},
               true},
           Row{"from all fwmark 0/0xff lookup 52",
               {.more = {{FRA_FWMARK, word(0)}, {FRA_FWMASK, word(0xFF)}}},
               true},
           Row{"from all iif eth0 lookup 52", {.more = {{FRA_IIFNAME, eth0}}}, false},
           Row{"from all iif lo lookup 52", {.more = {{FRA_IIFNAME, lo}}}, true},
           Row{"from all lookup [l3mdev-table]",
               {.table = RT_TABLE_UNSPEC, .more = {{FRA_L3MDEV, std::string(1, 1)}}},
               false},
           Row{"from all unreachable",
               {.table = RT_TABLE_UNSPEC, .action = FR_ACT_UNREACHABLE},
               true},
           Row{"from all fwmark 0x80000 unreachable",
               {.table = RT_TABLE_UNSPEC,
                .more = {{FRA_FWMARK, word(0x80000)}},
                .action = FR_ACT_UNREACHABLE},
               false},
           Row{"from all nop", {.table = RT_TABLE_UNSPEC, .action = FR_ACT_NOP}, false},
       }) {
    RouteDump dump(kLinks);
    const std::vector<std::byte> whole = message(row.rule);
    EXPECT_EQ(dump.take(whole), Then::More);
    EXPECT_EQ(dump.routes().cut, row.cut) << row.what;
    for (std::size_t size = 0; size < whole.size(); ++size)
      (void)RouteDump(kLinks).take(
          std::vector(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

TEST(Routes, OfThisMachine) {
  const NetworkLinks links = network_links();
  const auto routes = read_routes(links);
  ASSERT_TRUE(routes) << routes.error().message;
  for (const v1::NetworkRoute& one : routes->routes) {
    EXPECT_TRUE(std::ranges::any_of(links, [&](const auto& link) {
      return link.second.name == one.interface();
    })) << one.ShortDebugString();
  }
}

TEST(Routes, NoneInAnEmptyNetwork) {
  bool allowed = true;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      allowed = false;
      return;
    }
    const auto routes = read_routes(network_links());
    ASSERT_TRUE(routes) << routes.error().message;
    EXPECT_THAT(routes->routes, IsEmpty());
    EXPECT_FALSE(routes->cut);
    const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    const std::vector<std::byte> rule = message({}, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK);
    ASSERT_EQ(::send(socket, rule.data(), rule.size(), 0), static_cast<ssize_t>(rule.size()));
    nlmsgerr reply{.error = -1, .msg = {}};
    std::array<std::byte, 256> answer{};
    ASSERT_GE(::recv(socket, answer.data(), answer.size(), 0),
              static_cast<ssize_t>(sizeof(nlmsghdr) + sizeof(reply.error)));
    ::close(socket);
    std::memcpy(&reply.error, answer.data() + sizeof(nlmsghdr), sizeof(reply.error));
    ASSERT_EQ(reply.error, 0);
    EXPECT_TRUE(read_routes(network_links()).value().cut) << "a rule chooses another table";
  }).join();
  if (!allowed) GTEST_SKIP() << "this user may make no network of its own";
}

}  // namespace
}  // namespace muster::agent
