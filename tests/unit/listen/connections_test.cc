#include "controller/listen/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

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
  connections.has_called(peer(1, 2));
  EXPECT_EQ(add(peer(1, 3), connections), Full::UnfinishedOfSender);
  connections.has_called(peer(1, 1));
  connections.has_called(peer(1, 1));
  EXPECT_EQ(connections.unfinished(), 0u);
  EXPECT_EQ(add(peer(1, 3), connections), std::nullopt);
  EXPECT_EQ(connections.open(), 2u);
}

TEST_F(ConnectionsTest, AfterTheTimeOfAHandshakeItIsFinished) {
  Connections connections({.all = 3, .unfinished = 2, .unfinished_of_sender = 1}, kHandshake);
  EXPECT_EQ(add(peer(1, 1), connections), std::nullopt);
  now_ += kHandshake;
  EXPECT_EQ(add(peer(1, 2), connections), Full::UnfinishedOfSender);
  now_ += seconds(1);
  EXPECT_EQ(add(peer(1, 2), connections), std::nullopt);
  EXPECT_EQ(connections.open(), 2u);
  EXPECT_EQ(connections.unfinished(), 1u);
}

TEST_F(ConnectionsTest, WhatIsClosedIsNotCounted) {
  Connections connections({.all = 2, .unfinished = 2, .unfinished_of_sender = 2}, kHandshake);
  EXPECT_EQ(add(peer(1, 1), connections), std::nullopt);
  EXPECT_EQ(add(peer(1, 2), connections), std::nullopt);
  connections.has_called(peer(1, 1));
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
  EXPECT_EQ(usual.all, 256u) << "256 are for nodes that join, 512 for logs and files";
  EXPECT_EQ(usual.unfinished, 128u);
  EXPECT_EQ(usual.unfinished_of_sender, 32u);
  EXPECT_EQ(bounds_for(1'024, 0).all, 512u);
  EXPECT_EQ(many.all, 64'768u);
  EXPECT_EQ(many.unfinished, 1'024u);
  EXPECT_EQ(many.unfinished_of_sender, 256u);
  EXPECT_GT(bounds_for(SIZE_MAX, 256).all, many.all);
}

}  // namespace
}  // namespace muster::controller
