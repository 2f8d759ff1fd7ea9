// Addresses of hosts: with a getent that answers as the test wants, without one, and of this
// machine.
#include "common/name_service/hosts.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstring>

#include "fake_host.h"

namespace muster::name_service {
namespace {

using Texts = std::vector<std::string>;

TEST(AddressesOf, NumericOnesAndLocalhostNeedNoProgram) {
  const FakeHost host;
  host.getent("echo 10.9.9.9 STREAM");
  for (const std::string address : {"10.1.2.3", "::1", "fe80::1%lo"})
    EXPECT_EQ(addresses_of(address, host.tables()).value(), Texts{address});
  EXPECT_EQ(addresses_of("localhost", host.tables()).value(), (Texts{"127.0.0.1", "::1"}));
  for (const std::string name : {"", "-a", "--help", "a:b", "[::1]", "a\nb", "::1%", "a\x7F"}) {
    const auto none = addresses_of(name, host.tables());
    ASSERT_FALSE(none) << name;
    EXPECT_EQ(none.error().code, ErrorCode::NotFound);
    EXPECT_EQ(none.error().message, "it does not resolve");
  }
  EXPECT_EQ(host.asked(), "");
}

TEST(AddressesOf, AsksTheHost) {
  const FakeHost host;
  host.write("hosts", "10.0.0.1 node7\n");
  host.getent(R"([ "$*" = "ahosts node7" ] || exit 2
printf '10.0.0.7 STREAM node7\n10.0.0.7 DGRAM\nfd00::7 STREAM\n')");
  EXPECT_EQ(addresses_of("node7", host.tables()).value(), (Texts{"10.0.0.7", "fd00::7"}));
  EXPECT_EQ(addresses_of("node8", host.tables()).error().message, "it does not resolve");
  EXPECT_EQ(host.asked(), "2 ahosts node7\n2 ahosts node8\n");
  host.getent("echo 'node7 STREAM 10.0.0.7'");
  const auto hostile = addresses_of("node7", host.tables());
  EXPECT_EQ(hostile.error().code, ErrorCode::Unreachable);
  EXPECT_EQ(hostile.error().message, "getent printed no addresses of it");
  host.getent("exec sleep 1000");
  Tables tables = host.tables();
  tables.most = std::chrono::milliseconds(50);
  EXPECT_EQ(addresses_of("node7", tables).error().message,
            "getent gave no answer: it did not end within 50 ms");
}

TEST(AddressesOf, WithoutGetentTheFileIsRead) {
  const FakeHost host;
  EXPECT_EQ(addresses_of("node7", host.tables()).error().message, "it does not resolve");
  host.write("hosts", "10.0.0.1 node7\nfd00::1 NODE7\n");
  EXPECT_EQ(addresses_of("node7", host.tables()).value(), (Texts{"10.0.0.1", "fd00::1"}));
  host.getent("exit 1");  // it knows no table 'ahosts'
  EXPECT_EQ(addresses_of("node7", host.tables()).value(), (Texts{"10.0.0.1", "fd00::1"}));
}

TEST(AddressesOf, ByTheGetentOfThisMachine) {
  if (!std::filesystem::exists("/usr/bin/getent")) GTEST_SKIP() << "this machine has no getent";
  const Tables tables{.most = std::chrono::minutes(2)};
  EXPECT_EQ(addresses_of("127.1", tables).value(), Texts{"127.0.0.1"}) << "inet_aton(3)'s forms";
  EXPECT_EQ(addresses_of("no-such-host.invalid", tables).error().code, ErrorCode::NotFound);
}

TEST(SocketAddress, AndBack) {
  const std::string loopback = "%" + [] {
    char name[IF_NAMESIZE] = {};
    return std::string(::if_indextoname(1, name) == nullptr ? "1" : name);
  }();
  for (const std::string& text :
       {std::string("10.1.2.3"), std::string("fd00::7"), std::string("::"), "fe80::1" + loopback}) {
    const auto address = socket_address(text, 7777);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address_text(*address), text);
    EXPECT_EQ(size_of(*address),
              address->ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  }
  sockaddr_in v4{};
  const auto address = socket_address("10.1.2.3", 7777);
  std::memcpy(&v4, &*address, sizeof(v4));
  EXPECT_EQ(ntohs(v4.sin_port), 7777);
  EXPECT_EQ(ntohl(v4.sin_addr.s_addr), 0x0A010203U);
  sockaddr_in6 v6{};
  const auto numbered = socket_address("fe80::1%1", 80);
  std::memcpy(&v6, &*numbered, sizeof(v6));
  EXPECT_EQ(ntohs(v6.sin6_port), 80);
  EXPECT_EQ(v6.sin6_scope_id, 1U);
  for (const char* none : {"", "localhost", "fe80::1%no-such-if", "fe80::1%0", "1.2.3.4:80"})
    EXPECT_FALSE(socket_address(none, 1)) << none;
  EXPECT_EQ(address_text({}), "") << "no family";
}

}  // namespace
}  // namespace muster::name_service
