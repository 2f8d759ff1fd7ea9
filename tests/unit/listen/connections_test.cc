#include "controller/listen/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <vector>

#include "common/io/unique_fd.h"
#include "common/name_service/hosts.h"

namespace muster::controller {
namespace {

using Full = Connections::Full;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kHandshake = seconds(10);

class ConnectionsTest : public testing::Test {
 protected:
  static Peer peer(int host, int port) {
    return *Peer::from_socket(*name_service::socket_address("10.0.0." + std::to_string(host),
                                                            static_cast<std::uint16_t>(port)));
  }
  // A socket, which is closed by closing it here.
  std::optional<Full> add(const Peer& of, Connections& to) {
    io::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto full = to.add(socket.get(), of, now_);
    if (!full) sockets_.push_back(std::move(socket));
    return full;
  }
  static void call(Connections& of, const Peer& peer,
                   const ConnectionOwner& owner = {.name = "user 'ann'", .most = 9}) {
    of.has_called(peer, [&] { return owner; });
  }
  BootTime now_{seconds(1'000)};
  std::vector<io::UniqueFd> sockets_;
};

TEST_F(ConnectionsTest, OneSenderHasItsOwnBound) {
  Connections connections({.all = 9, .unfinished = 4, .unfinished_of_sender = 2}, kHandshake);
  EXPECT_EQ(add(peer(1, 1), connections), std::nullopt);
  EXPECT_EQ(add(peer(1, 2), connections), std::nullopt);
  EXPECT_EQ(add(peer(1, 3), connections), Full::UnfinishedOfSender);
  EXPECT_EQ(add(peer(2, 1), connections), std::nullopt);
  EXPECT_EQ(add(peer(3, 1), connections), std::nullopt);
  EXPECT_EQ(add(peer(4, 1), connections), Full::Unfinished);
}

TEST_F(ConnectionsTest, ACallFinishesItsConnectionAndNoOther) {
  Connections connections({.all = 4, .unfinished = 2, .unfinished_of_sender = 1}, kHandshake);
  EXPECT_EQ(add(peer(1, 1), connections), std::nullopt);
  call(connections, peer(1, 2));
  EXPECT_EQ(add(peer(1, 3), connections), Full::UnfinishedOfSender);
  call(connections, peer(1, 1));
  call(connections, peer(1, 1));
  EXPECT_EQ(connections.unfinished(), 0u);
  EXPECT_EQ(add(peer(1, 3), connections), std::nullopt);
  EXPECT_EQ(connections.open(), 2u);
}

// The other end of a pair sees the end of it.
class EndedConnections : public ConnectionsTest {
 protected:
  void add_pair(const Peer& of, Connections& to) {
    int pair[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    sockets_.emplace_back(pair[0]);
    others_.emplace_back(pair[1]);
    EXPECT_EQ(to.add(pair[0], of, now_), std::nullopt);
  }
  [[nodiscard]] bool is_ended(std::size_t number) const {
    char byte = 0;
    return ::recv(others_.at(number).get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  std::vector<io::UniqueFd> others_;
};

TEST_F(EndedConnections, WhatHasNotCalledInTheTimeOfAHandshakeGivesItsPlaceToOthers) {
  Connections connections({.all = 3, .unfinished = 2, .unfinished_of_sender = 1}, kHandshake);
  add_pair(peer(1, 1), connections);
  add_pair(peer(2, 1), connections);
  call(connections, peer(2, 1));
  now_ += kHandshake;
  EXPECT_EQ(add(peer(1, 2), connections), Full::UnfinishedOfSender);
  EXPECT_FALSE(is_ended(0));
  now_ += seconds(1);
  EXPECT_EQ(add(peer(1, 2), connections), std::nullopt);
  EXPECT_TRUE(is_ended(0));
  EXPECT_FALSE(is_ended(1));
  EXPECT_EQ(connections.open(), 2u);
  EXPECT_EQ(connections.unfinished(), 1u);
}

TEST_F(EndedConnections, WhereAllPlacesAreTakenOneOwnerKeepsAShare) {
  Connections connections({.all = 5, .unfinished = 9, .unfinished_of_sender = 9}, kHandshake);
  const ConnectionOwner bob{.name = "user 'bob'", .most = 2};
  for (int port = 1; port <= 4; ++port) {
    now_ += seconds(1);
    add_pair(peer(1, port), connections);
    call(connections, peer(1, port), bob);
  }
  EXPECT_FALSE(is_ended(3)) << "there is room";
  add_pair(peer(2, 1), connections);
  call(connections, peer(2, 1));  // ann's
  EXPECT_EQ(connections.take_ended(), "");
  now_ += Connections::kCheckApart;
  EXPECT_EQ(add(peer(3, 1), connections), std::nullopt);
  EXPECT_EQ(connections.take_ended(),
            "2 connections of user 'bob' were ended, because all places were taken and one name "
            "may keep 2; use one connection for many calls");
  EXPECT_EQ(connections.take_ended(), "");
  EXPECT_FALSE(is_ended(0));
  EXPECT_FALSE(is_ended(1));
  EXPECT_TRUE(is_ended(2)) << "the newest ones";
  EXPECT_TRUE(is_ended(3));
  EXPECT_FALSE(is_ended(4)) << "ann's";
  EXPECT_EQ(connections.open(), 4u);
}

// A connection that was closed without a call had the same address and port.
TEST_F(ConnectionsTest, ACallIsOfTheSocketThatIsOpen) {
  Connections connections({.all = 4, .unfinished = 4, .unfinished_of_sender = 4}, kHandshake);
  EXPECT_EQ(add(peer(1, 1), connections), std::nullopt);
  sockets_.front().reset();
  const io::UniqueFd other(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));  // has its number
  EXPECT_EQ(add(peer(1, 1), connections), std::nullopt);
  call(connections, peer(1, 1));
  now_ += kHandshake + seconds(1);
  for (int port = 2; port <= 4; ++port) EXPECT_EQ(add(peer(1, port), connections), std::nullopt);
  EXPECT_EQ(connections.open(), 4u) << "the dead one is forgotten, the one with a call stays";
}

TEST_F(EndedConnections, WhoseCertificateDoesNotCountGivesItsPlaceToOthers) {
  Connections connections({.all = 2, .unfinished = 2, .unfinished_of_sender = 2}, kHandshake);
  const auto revoked = std::make_shared<std::atomic<bool>>(false);
  add_pair(peer(1, 1), connections);
  add_pair(peer(1, 2), connections);
  call(connections, peer(1, 1), {.name = "user 'bob'", .most = 9, .revoked = revoked});
  call(connections, peer(1, 2));
  EXPECT_EQ(add(peer(2, 1), connections), Full::All);
  *revoked = true;
  now_ += Connections::kCheckApart;
  EXPECT_EQ(add(peer(2, 1), connections), std::nullopt);
  EXPECT_TRUE(is_ended(0));
  EXPECT_FALSE(is_ended(1));
}

TEST_F(ConnectionsTest, WhatIsClosedIsNotCounted) {
  Connections connections({.all = 2, .unfinished = 2, .unfinished_of_sender = 2}, kHandshake);
  EXPECT_EQ(add(peer(1, 1), connections), std::nullopt);
  EXPECT_EQ(add(peer(1, 2), connections), std::nullopt);
  call(connections, peer(1, 1));
  EXPECT_EQ(add(peer(1, 3), connections), Full::All);
  const int number = sockets_.front().get();
  sockets_.front().reset();
  // Another socket has the number meanwhile.
  const io::UniqueFd other(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(other.get(), number);
  now_ += Connections::kCheckApart - milliseconds(1);
  EXPECT_EQ(add(peer(1, 3), connections), Full::All) << "it was checked a moment ago";
  now_ += milliseconds(1);
  EXPECT_EQ(add(peer(1, 3), connections), std::nullopt);
  EXPECT_EQ(connections.open(), 2u);
}

// gRPC has closed the connection that had the number before: the kernel has given it out again.
TEST_F(ConnectionsTest, ANumberThatComesAgainReplacesItsConnection) {
  Connections connections({.all = 2, .unfinished = 1, .unfinished_of_sender = 1}, kHandshake);
  EXPECT_EQ(add(peer(1, 1), connections), std::nullopt);
  EXPECT_EQ(connections.add(sockets_.front().get(), peer(2, 1), now_), std::nullopt);
  EXPECT_EQ(connections.open(), 1u);
  EXPECT_EQ(connections.unfinished(), 1u);
}

TEST_F(ConnectionsTest, MostDescriptorsAreForConnectionsWhereThereAreMany) {
  const ConnectionBounds few = bounds_for(64, 256), usual = bounds_for(1'024, 256),
                         many = bounds_for(65'536, 256);
  EXPECT_EQ(few.all, 16u);
  EXPECT_EQ(few.unfinished, 8u);
  EXPECT_EQ(few.unfinished_of_sender, 4u);
  EXPECT_EQ(few.of_user, 4u);
  EXPECT_EQ(few.of_node, 4u);
  EXPECT_EQ(usual.all, 256u) << "256 are for nodes that join, 512 for logs and files";
  EXPECT_EQ(usual.unfinished, 128u);
  EXPECT_EQ(usual.unfinished_of_sender, 32u);
  EXPECT_EQ(usual.of_user, 64u);
  EXPECT_EQ(usual.of_node, 64u);
  EXPECT_EQ(bounds_for(1'024, 0).all, 512u);
  EXPECT_EQ(many.all, 64'768u);
  EXPECT_EQ(many.unfinished, 1'024u);
  EXPECT_EQ(many.unfinished_of_sender, 256u);
  EXPECT_EQ(many.of_user, 1'024u);
  EXPECT_EQ(many.of_node, 512u);
  EXPECT_GT(bounds_for(SIZE_MAX, 256).all, many.all);
}

}  // namespace
}  // namespace muster::controller
