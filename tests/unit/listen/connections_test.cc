#include "controller/listen/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
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
    of.has_called({.peer = peer, .connection = nullptr}, [&] { return owner; });
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

// What the watch sees: each connection has an id, and the test says what it has received.
class WatchedConnections : public EndedConnections {
 protected:
  static constexpr std::uint64_t kMib = 1 << 20;
  // Its number.
  std::size_t add_one(int host = 1) {
    const std::size_t number = sockets_.size();
    add_pair(peer(host, static_cast<int>(number) + 1), connections_);
    ids_.push_back(std::make_shared<int>(host));
    return number;
  }
  [[nodiscard]] Result<void> begin(std::size_t number, const ConnectionOwner& owner = ann()) {
    return connections_.begin(ids_.at(number).get(), owner, now_);
  }
  void whole(std::size_t number, const ConnectionOwner& owner = ann()) {
    connections_.has_called({.peer = peer(*ids_.at(number), static_cast<int>(number) + 1),
                             .connection = ids_.at(number)},
                            [&] { return owner; });
  }
  // One with a call that is over.
  std::size_t add_called(int host = 1, const ConnectionOwner& owner = ann()) {
    const std::size_t number = add_one(host);
    EXPECT_TRUE(begin(number, owner));
    whole(number, owner);
    return number;
  }
  void receive(std::size_t number, std::uint64_t bytes) {
    received_[sockets_.at(number).get()] += bytes;
    now_ += Connections::kWatchApart;
    connections_.watch(now_);
  }
  // Of the one connection that was ended.
  std::string take_line() {
    const auto ended = connections_.take_ended();
    return ended.size() == 1 ? ended.front().text : std::to_string(ended.size()) + " were ended";
  }
  static ConnectionOwner ann() { return {.name = "user 'ann'", .most = 3}; }
  static ConnectionOwner bob() { return {.name = "user 'bob'", .most = 3}; }

  std::map<int, std::uint64_t> received_;
  std::vector<std::shared_ptr<int>> ids_;
  Connections connections_{{.all = 99, .unfinished = 99, .unfinished_of_sender = 99},
                           kHandshake,
                           [this](int fd) { return received_[fd]; }};
};

TEST_F(WatchedConnections, AnOwnerNeverHasMoreThanItsShare) {
  for (int i = 0; i < 3; ++i) add_called();
  const std::size_t fourth = add_one();
  const auto refused = begin(fourth);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(refused.error().message,
            "calling the controller: user 'ann' has 3 connections already, which is the bound; use "
            "one connection for many calls, or try again when others have ended");
  EXPECT_TRUE(begin(0)) << "its connections go on";
  EXPECT_TRUE(begin(add_one(), bob())) << "others have their own share";
  sockets_.at(1).reset();
  EXPECT_TRUE(begin(fourth)) << "one has ended";
}

TEST_F(WatchedConnections, OfSeveralThatBeginAtOnceTheLastOnesEnd) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(begin(add_one()));
  for (std::size_t i = 0; i < 4; ++i) whole(i);
  EXPECT_FALSE(is_ended(2));
  EXPECT_TRUE(is_ended(3));
  EXPECT_EQ(take_line(),
            "a connection of user 'ann' from 10.0.0.1 was ended: this name has 3 others; use one "
            "connection for many calls");
  EXPECT_TRUE(connections_.take_ended().empty());
}

TEST_F(WatchedConnections, WhatComesWhileARequestIsNotWholeIsBounded) {
  const std::size_t one = add_called();
  receive(one, 100 * kMib);
  EXPECT_TRUE(begin(one));
  receive(one, 0);
  receive(one, Connections::kUnreadOfOneMost);
  EXPECT_FALSE(is_ended(one));
  whole(one);
  EXPECT_TRUE(begin(one));
  receive(one, kMib);
  receive(one, Connections::kUnreadOfOneMost);
  EXPECT_FALSE(is_ended(one)) << "counted from when there was one again";
  receive(one, 1);
  EXPECT_TRUE(is_ended(one));
  EXPECT_EQ(take_line(),
            "a connection of user 'ann' from 10.0.0.1 was ended: it has sent 12 MiB while a "
            "request was not whole, and may send 12 MiB");
}

// Regression: 64 unfinished requests on each of three connections were 1.8 GiB.
TEST_F(WatchedConnections, OneRequestThatIsWholeDoesNotHideAnother) {
  const std::size_t one = add_one();
  EXPECT_TRUE(begin(one));
  EXPECT_TRUE(begin(one));
  receive(one, Connections::kUnreadOfOneMost);
  EXPECT_FALSE(is_ended(one));
  whole(one);
  receive(one, 1);
  EXPECT_TRUE(is_ended(one));
}

TEST_F(WatchedConnections, AllOfOneOwnerHaveABoundAndTheLargestEnds) {
  std::vector<std::size_t> his;
  const ConnectionOwner many{.name = "user 'eve'", .most = 9};
  for (int i = 0; i < 5; ++i) his.push_back(add_called(1, many));
  const std::size_t others = add_called(2, bob());
  EXPECT_TRUE(begin(others, bob()));
  for (const std::size_t one : his) EXPECT_TRUE(begin(one, many));
  receive(others, 0);
  receive(others, 11 * kMib);
  for (std::size_t i = 0; i < 4; ++i) receive(his[i], (8 + i) * kMib);
  EXPECT_TRUE(connections_.take_ended().empty());
  receive(his[4], 11 * kMib);
  EXPECT_TRUE(is_ended(his[3]) != is_ended(his[4])) << "49 MiB: one with 11 MiB ends";
  EXPECT_FALSE(is_ended(his[0]));
  EXPECT_FALSE(is_ended(others));
  EXPECT_EQ(take_line(),
            "a connection of user 'eve' from 10.0.0.1 was ended: it has sent 11 MiB while a "
            "request was not whole, and with others like it 49 MiB where all of them may send 48 "
            "MiB");
}

TEST_F(WatchedConnections, WhatIsNobodysHasABoundOfItsOwn) {
  for (std::size_t i = 0; i < 4; ++i) receive(add_one(), Connections::kUnreadOfOneMost);
  const std::size_t small = add_one(2);
  receive(small, 1);
  EXPECT_FALSE(is_ended(small));
  std::size_t ended = 0;
  for (std::size_t i = 0; i < 4; ++i) ended += is_ended(i) ? 1 : 0;
  EXPECT_EQ(ended, 1U);
  EXPECT_EQ(take_line(),
            "a connection without a whole request yet from 10.0.0.1 was ended: it has sent 12 MiB "
            "while a request was not whole, and with others like it 48 MiB where all of them may "
            "send 48 MiB");
  now_ += Connections::kNobodysMost;
  connections_.watch(now_);
  EXPECT_TRUE(is_ended(small)) << "whatever it sends, it is nobody's for so long only";
}

// Regression: a node announced a message of 2 GiB on one of its streams, and sent almost all of it.
TEST_F(WatchedConnections, AMessageOfAStreamIsBounded) {
  const ConnectionOwner node{.name = "node 'n0'", .most = 9};
  const auto came = std::make_shared<std::atomic<bool>>(false);
  const std::size_t one = add_one();
  EXPECT_TRUE(begin(one, node));
  whole(one, node);
  connections_.has_stream(ids_.at(one).get(), came);
  const auto receive_message = [&](std::uint64_t bytes, bool is_whole) {
    *came = is_whole;
    receive(one, bytes);
  };
  for (int i = 0; i < 9; ++i) receive_message(9 * kMib, true);
  receive_message(Connections::kUnreadOfOneMost, false);
  EXPECT_FALSE(is_ended(one));
  receive_message(1, false);
  EXPECT_TRUE(is_ended(one));
  EXPECT_EQ(take_line(),
            "a connection of node 'n0' from 10.0.0.1 was ended: it has sent 12 MiB while a request "
            "was not whole, and may send 12 MiB");
}

// Regression: streams that were idle were looked at every half second, and a fast sender brought
// 60 MiB over each of them in between.
TEST_F(WatchedConnections, AStreamIsCheckedEachTimeWhateverItDidBefore) {
  const ConnectionOwner node{.name = "node 'n0'", .most = 9};
  const auto came = std::make_shared<std::atomic<bool>>(false);
  const std::size_t one = add_one();
  EXPECT_TRUE(begin(one, node));
  whole(one, node);
  connections_.has_stream(ids_.at(one).get(), came);
  for (int i = 0; i < 20; ++i) receive(one, 0);
  EXPECT_FALSE(is_ended(one));
  receive(one, Connections::kUnreadOfOneMost + 1);
  EXPECT_TRUE(is_ended(one));
}

TEST_F(WatchedConnections, StreamsOfThousandsOfConnectionsAreCheckedLessOften) {
  EXPECT_EQ(Connections::streams_apart(0), Connections::kWatchApart);
  EXPECT_EQ(Connections::streams_apart(2'000), Connections::kWatchApart);
  EXPECT_EQ(Connections::streams_apart(20'000), 10 * Connections::kWatchApart);
}

// Regression: a client that had used reflection once was cut off 12 MiB later, and one that had
// used it 1,024 times could call no more.
TEST_F(WatchedConnections, WhatFollowsAStreamThatIsOverIsNotOfIt) {
  const std::size_t one = add_called();
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(begin(one));
    whole(one);
    connections_.has_stream(ids_.at(one).get(), std::make_shared<std::atomic<bool>>(false));
  }
  receive(one, 99 * kMib);
  EXPECT_FALSE(is_ended(one));
}

// Regression: one user's unfinished requests ended the longer ones of everybody else.
TEST_F(WatchedConnections, OfWhatIsNobodysTheSenderOfMostLosesOne) {
  const std::size_t honest = add_one(2);
  receive(honest, 9 * kMib);
  std::vector<std::size_t> others;
  for (int i = 0; i < 40; ++i) receive(others.emplace_back(add_one(1)), kMib);
  EXPECT_FALSE(is_ended(honest));
  EXPECT_TRUE(std::ranges::any_of(others, [&](std::size_t one) { return is_ended(one); }));
  const auto ended = connections_.take_ended();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended.front().of, "10.0.0.1");
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
  EXPECT_EQ(many.of_user, 64u);
  EXPECT_EQ(many.of_node, 512u);
  EXPECT_GT(bounds_for(SIZE_MAX, 256).all, many.all);
}

}  // namespace
}  // namespace muster::controller
