#include "controller/listen/socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/name_service/hosts.h"

namespace muster::controller {
namespace {

bool reaches(const std::string& address, int port) {
  const auto to = name_service::socket_address(address, static_cast<std::uint16_t>(port));
  const io::UniqueFd client(::socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(client.get(), reinterpret_cast<const sockaddr*>(&*to),
                   name_service::size_of(*to)) == 0;
}

TEST(ListenTcp, AFreePortIsFound) {
  const auto socket = listen_tcp("127.0.0.1:0");
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_GT(socket->port, 0);
  EXPECT_TRUE(reaches("127.0.0.1", socket->port));
  EXPECT_FALSE(reaches("127.0.0.2", socket->port));
}

TEST(ListenTcp, APortIsNotShared) {
  const auto first = listen_tcp("127.0.0.1:0");
  ASSERT_TRUE(first) << first.error().message;
  for (const char* address : {"127.0.0.1", "0.0.0.0", "[::]"})
    EXPECT_FALSE(listen_tcp(std::string(address) + ":" + std::to_string(first->port))) << address;
}

TEST(ListenTcp, EachWildcardIsBothFamilies) {
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    const auto socket = listen_tcp(address);
    ASSERT_TRUE(socket) << socket.error().message;
    EXPECT_TRUE(reaches("127.0.0.1", socket->port)) << address;
    EXPECT_TRUE(reaches("::1", socket->port)) << address;
  }
}

TEST(ListenTcp, Ipv6) {
  const auto socket = listen_tcp("[::1]:0");
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_TRUE(reaches("::1", socket->port));
}

TEST(ListenTcp, WhatIsNotHereOrNoAddressFails) {
  for (const char* address : {"192.0.2.1:0", "here:0", "127.0.0.1:70000", "127.0.0.1", ""})
    EXPECT_FALSE(listen_tcp(address)) << address;
}

TEST(ListenTcp, TheReasonIsTheSystems) {
  const auto first = listen_tcp("127.0.0.1:0");
  ASSERT_TRUE(first) << first.error().message;
  for (const std::string& address :
       {"127.0.0.1:" + std::to_string(first->port), std::string("192.0.2.1:0")})
    EXPECT_TRUE(listen_tcp(address).error().message.starts_with("the address is taken, or not"))
        << address;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto full = listen_tcp("127.0.0.1:0");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "making a socket: Too many open files");
}

class ListenUnix : public testing::Test {
 protected:
  ListenUnix() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-lis-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  ~ListenUnix() override { std::filesystem::remove_all(dir_); }
  std::filesystem::path dir_;
};

TEST_F(ListenUnix, ItIsTheUsersOwnAndReplacesASocket) {
  const std::string path = dir_ / "s";
  struct stat first{}, second{};
  {
    const auto socket = listen_unix(path);
    ASSERT_TRUE(socket) << socket.error().message;
    ASSERT_EQ(::stat(path.c_str(), &first), 0);
    EXPECT_EQ(first.st_mode & 0777, 0600u);
  }
  const auto again = listen_unix(path);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(::stat(path.c_str(), &second), 0);
  EXPECT_TRUE(S_ISSOCK(second.st_mode));
}

TEST_F(ListenUnix, AFileIsNotReplaced) {
  const std::string path = dir_ / "s";
  std::ofstream(path) << "mine";
  EXPECT_FALSE(listen_unix(path));
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST_F(ListenUnix, ALongPathFails) { EXPECT_FALSE(listen_unix(dir_ / std::string(108, 'x'))); }

}  // namespace
}  // namespace muster::controller
