#include "controller/listen/acceptor.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "common/name_service/hosts.h"
#include "controller/listen/socket.h"

namespace muster::controller {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class AcceptorTest : public testing::Test {
 protected:
  static constexpr std::chrono::seconds kDeadline{30};

  void start(ConnectionBounds bounds) {
    auto socket = listen_tcp("127.0.0.1:0");
    ASSERT_TRUE(socket) << socket.error().message;
    port_ = socket->port;
    connections_.emplace(bounds, std::chrono::seconds(10));
    std::vector<Acceptor::Port> ports;
    ports.push_back({.fd = std::move(socket->fd),
                     .address = "here",
                     .counted = true,
                     .hand_over = [this](int fd) {
                       const std::lock_guard lock(mutex_);
                       accepted_.emplace_back(fd);
                       changed_.notify_all();
                     }});
    acceptor_.emplace(
        std::move(ports), *connections_, system_clock(),
        Acceptor::Hooks{.warn =
                            [this](const std::string& line) {
                              const std::lock_guard lock(mutex_);
                              lines_.push_back(line);
                              changed_.notify_all();
                            },
                        .accept = [this](int fd, sockaddr* from,
                                         socklen_t* size) { return accept(fd, from, size); }});
    acceptor_->begin();
  }
  void TearDown() override {
    if (acceptor_) acceptor_->stop();
  }

  // Fails as often as there are errors waiting.
  int accept(int fd, sockaddr* from, socklen_t* size) {
    const std::lock_guard lock(mutex_);
    if (!errors_.empty()) {
      errno = errors_.front();
      errors_.pop_front();
      changed_.notify_all();
      return -1;
    }
    return ::accept4(fd, from, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  }
  // An end that refuses at once may be faster than connect(): then there is no descriptor.
  io::UniqueFd connect(const std::string& from = "127.0.0.1") {
    io::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto own = name_service::socket_address(from, 0);
    EXPECT_EQ(::bind(client.get(), reinterpret_cast<const sockaddr*>(&*own), sizeof(sockaddr_in)),
              0);
    const auto to = name_service::socket_address("127.0.0.1", static_cast<std::uint16_t>(port_));
    if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&*to), sizeof(sockaddr_in)) == 0)
      return client;
    EXPECT_EQ(errno, ECONNRESET) << "connecting from " << from;
    return {};
  }
  // The other end has closed it at once.
  static bool is_refused(const io::UniqueFd& client) {
    char byte = 0;
    return !client || (::recv(client.get(), &byte, 1, 0) < 0 && errno == ECONNRESET);
  }
  template <class True>
  bool wait_until(True is_true) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, is_true);
  }
  bool wait_accepted(std::size_t count) {
    return wait_until([&] { return accepted_.size() == count; });
  }

  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> errors_;
  std::vector<io::UniqueFd> accepted_;
  std::vector<std::string> lines_;
  std::optional<Connections> connections_;
  std::optional<Acceptor> acceptor_;
};

constexpr ConnectionBounds kWide{.all = 100, .unfinished = 100, .unfinished_of_sender = 100};

TEST_F(AcceptorTest, WhatIsAcceptedIsHandedOver) {
  start(kWide);
  const io::UniqueFd client = connect();
  ASSERT_TRUE(wait_accepted(1));
  ASSERT_EQ(::write(client.get(), "x", 1), 1);
  pollfd ready{.fd = accepted_.front().get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, 30'000), 1);
  char byte = 0;
  EXPECT_EQ(::read(accepted_.front().get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(::read(accepted_.front().get(), &byte, 1), -1) << "it does not block";
  EXPECT_TRUE(lines_.empty());
}

// gRPC's own listener ends at each of these.
TEST_F(AcceptorTest, NoErrorEndsIt) {
  errors_ = {EMFILE, ENFILE, ENOBUFS, ENOMEM, EINVAL, ECONNABORTED, EPROTO, EINTR, EMFILE};
  start(kWide);
  const io::UniqueFd client = connect();
  ASSERT_TRUE(wait_accepted(1));
  acceptor_->stop();
  EXPECT_TRUE(errors_.empty());
}

TEST_F(AcceptorTest, EachErrorOfTheSystemIsOneLine) {
  errors_ = {EMFILE, EMFILE, ECONNABORTED, ENFILE, EMFILE};
  start(kWide);
  const io::UniqueFd client = connect();
  ASSERT_TRUE(wait_accepted(1));
  acceptor_->stop();
  EXPECT_THAT(lines_,
              ElementsAre("accepting connections on 'here': Too many open files; it is tried again",
                          "accepting connections on 'here': Too many open files in system; it is "
                          "tried again"));
}

TEST_F(AcceptorTest, WhatIsTooMuchIsRefusedAtOnceAndOneLine) {
  start({.all = 100, .unfinished = 3, .unfinished_of_sender = 2});
  const io::UniqueFd first = connect(), second = connect();
  ASSERT_TRUE(wait_accepted(2));
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(is_refused(connect()));
  const io::UniqueFd other = connect("127.0.0.2");
  ASSERT_TRUE(wait_accepted(3));
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(is_refused(connect("127.0.0.3")));
  acceptor_->stop();  // a line comes after its refusal
  EXPECT_THAT(
      lines_,
      ElementsAre(AllOf(StartsWith("a connection from 127.0.0.1 was refused: 2 connections"),
                        HasSubstr("of one address"), EndsWith("which is the bound")),
                  StartsWith("a connection from 127.0.0.3 was refused: 3 connections")));
}

TEST_F(AcceptorTest, AClosedConnectionMakesRoomForAnother) {
  start({.all = 1, .unfinished = 1, .unfinished_of_sender = 1});
  const io::UniqueFd first = connect();
  ASSERT_TRUE(wait_accepted(1));
  EXPECT_TRUE(is_refused(connect()));
  {
    const std::lock_guard lock(mutex_);
    accepted_.clear();
  }
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  io::UniqueFd next;
  do {  // the bound is checked anew every kCheckApart
    next = connect();
    pollfd closed{.fd = next.get(), .events = POLLRDHUP, .revents = 0};
    if (::poll(&closed, 1, 20) == 0) break;
  } while (std::chrono::steady_clock::now() < end);
  EXPECT_TRUE(wait_accepted(1));
}

TEST_F(AcceptorTest, AfterStopNobodyListens) {
  start(kWide);
  acceptor_->stop();
  const io::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto to = name_service::socket_address("127.0.0.1", static_cast<std::uint16_t>(port_));
  EXPECT_NE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&*to), sizeof(sockaddr_in)),
            0);
}

}  // namespace
}  // namespace muster::controller
