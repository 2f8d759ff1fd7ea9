#include "controller/listen/received.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "common/io/unique_fd.h"
#include "common/name_service/hosts.h"
#include "controller/listen/socket.h"

namespace muster::controller {
namespace {

TEST(Received, WhatTheKernelHasReceivedIsKnown) {
  auto listening = listen_tcp("127.0.0.1:0");
  ASSERT_TRUE(listening) << listening.error().message;
  const io::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto to =
      name_service::socket_address("127.0.0.1", static_cast<std::uint16_t>(listening->port));
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&*to), sizeof(sockaddr_in)),
            0);
  const io::UniqueFd server(::accept4(listening->fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(server);
  EXPECT_EQ(received_by(server.get()), 0U);
  const std::string sent(5'000, 'x');
  ASSERT_EQ(::send(client.get(), sent.data(), sent.size(), 0), 5'000);
  std::string got(sent.size(), ' ');
  ASSERT_EQ(::recv(server.get(), got.data(), got.size(), MSG_WAITALL), 5'000);
  EXPECT_EQ(received_by(server.get()), 5'000U);
  EXPECT_EQ(received_by(-1), 0U);
}

}  // namespace
}  // namespace muster::controller
