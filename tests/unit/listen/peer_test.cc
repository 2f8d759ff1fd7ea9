#include "controller/listen/peer.h"

#include <gtest/gtest.h>

#include "common/name_service/hosts.h"

namespace muster::controller {
namespace {

Peer at(const std::string& address, std::uint16_t port) {
  return *Peer::from_socket(*name_service::socket_address(address, port));
}

TEST(Peer, GrpcsTextIsTheSocketsAddress) {
  EXPECT_EQ(Peer::from_grpc("ipv4:10.1.2.3:4567"), at("10.1.2.3", 4567));
  EXPECT_EQ(Peer::from_grpc("ipv6:%5B::1%5D:80"), at("::1", 80));
  EXPECT_EQ(Peer::from_grpc("ipv6:[fd00::7]:80"), at("fd00::7", 80));
  EXPECT_EQ(Peer::from_grpc("ipv6:%5Bfe80::1%25lo%5D:80"), at("fe80::1%lo", 80));
  EXPECT_NE(Peer::from_grpc("ipv4:10.1.2.3:4567"), at("10.1.2.3", 4568));
  EXPECT_NE(Peer::from_grpc("ipv4:10.1.2.3:4567"), at("10.1.2.4", 4567));
}

TEST(Peer, AMappedAddressIsIpv4) {
  EXPECT_EQ(at("::ffff:10.1.2.3", 4567), at("10.1.2.3", 4567));
  EXPECT_EQ(at("::ffff:10.1.2.3", 4567).text(), "10.1.2.3");
}

TEST(Peer, OtherTextsAreNone) {
  for (const char* text :
       {"", "unix:", "unix:/run/s", "ipv4:", "ipv4:10.1.2.3", "ipv4:10.1.2.3:", "ipv4:10.1.2.3:x",
        "ipv4:10.1.2.3:70000", "ipv4:host:1", "ipv6:%5B::1%5D", "ipv6:%5B%5D:80", "ipv6::80"})
    EXPECT_FALSE(Peer::from_grpc(text)) << text;
  EXPECT_FALSE(Peer::from_socket(sockaddr_storage{.ss_family = AF_UNIX}));
}

// A host of IPv6 has a network of its own to choose addresses from.
TEST(Peer, ASenderIsAnIpv4AddressOrAnIpv6Network) {
  EXPECT_NE(at("10.1.2.3", 1).sender(), at("10.1.2.4", 1).sender());
  EXPECT_EQ(at("10.1.2.3", 1).sender(), at("10.1.2.3", 2).sender());
  EXPECT_EQ(at("2001:db8::1", 1).sender(), at("2001:db8::2:3", 2).sender());
  EXPECT_NE(at("2001:db8::1", 1).sender(), at("2001:db8:0:1::1", 1).sender());
}

}  // namespace
}  // namespace muster::controller
