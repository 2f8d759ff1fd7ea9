#include "controller/server.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

namespace muster::controller {
namespace {

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-srv-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  ~ServerTest() override { std::filesystem::remove_all(dir_); }
  [[nodiscard]] std::string socket() const { return (dir_ / "s").string(); }
  std::filesystem::path dir_;
};

// gRPC removes an existing socket file when it binds. Regression: a second controller left the
// first one running, and nobody could reach it any more.
TEST_F(ServerTest, ASocketThatIsServedIsNotTaken) {
  auto first = Server::start({"unix:" + socket()}, {}, nullptr);
  ASSERT_TRUE(first) << first.error().message;
  struct stat before{}, after{}, lock{};
  ASSERT_EQ(::stat(socket().c_str(), &before), 0);
  ASSERT_EQ(::stat((socket() + ".lock").c_str(), &lock), 0);
  EXPECT_EQ(lock.st_mode & 0777, 0600u);
  const auto second = Server::start({"127.0.0.1:0", "unix:" + socket()}, {}, nullptr);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "listening on 'unix:" + socket() +
                                        "': another controller serves this socket (it holds '" +
                                        socket() +
                                        ".lock'); stop that one, or choose another path");
  ASSERT_EQ(::stat(socket().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  (*first)->shut_down();
  first->reset();
  auto third = Server::start({"unix:" + socket()}, {}, nullptr);
  ASSERT_TRUE(third) << third.error().message;
  (*third)->shut_down();
}

TEST_F(ServerTest, ASocketInAFolderThatIsNotThere) {
  const auto none = Server::start({"unix:" + socket() + "/s"}, {}, nullptr);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find(socket() + "/s.lock"), std::string::npos)
      << none.error().message;
}

TEST_F(ServerTest, TheSocketIsTheUsersOwnAndGoesAtTheEnd) {
  {
    const auto server = Server::start({"unix:" + socket()}, {}, nullptr);
    ASSERT_TRUE(server) << server.error().message;
    struct stat made{};
    ASSERT_EQ(::stat(socket().c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777, 0600u);
  }
  EXPECT_FALSE(std::filesystem::exists(socket()));
  EXPECT_TRUE(std::filesystem::exists(socket() + ".lock"));
}

TEST_F(ServerTest, AnAddressThatIsTakenIsNamed) {
  const auto tcp = grpc::InsecureServerCredentials();
  const auto first = Server::start({"[::1]:0", "0.0.0.0:0"}, {}, tcp);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ((*first)->bound().size(), 2u);
  for (const std::string& taken : (*first)->bound()) {
    const auto second = Server::start({"unix:" + socket(), taken}, {}, tcp);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message, "listening on '" + taken +
                                          "': the address is taken, or not this machine's; choose "
                                          "another one, or port 0 for a free one");
    EXPECT_FALSE(std::filesystem::exists(socket())) << "nobody serves it";
  }
}

// gRPC has the connection from the acceptor, with the credentials of its port.
TEST_F(ServerTest, BothFamiliesAreServed) {
  const auto server =
      Server::start({"[::]:0", "unix:" + socket()}, {}, grpc::InsecureServerCredentials());
  ASSERT_TRUE(server) << server.error().message;
  const std::string& tcp = (*server)->bound().front();
  const std::string port = tcp.substr(tcp.rfind(':'));
  for (const std::string& address : {"127.0.0.1" + port, "[::1]" + port, "unix:" + socket()}) {
    const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    EXPECT_TRUE(
        channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30)))
        << address;
  }
}

TEST_F(ServerTest, AHostsNameBecomesItsAddress) {
  const auto server = Server::start({"localhost:0"}, {}, grpc::InsecureServerCredentials());
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_TRUE((*server)->bound().front().starts_with("localhost:"));
  (*server)->shut_down();
  const auto none =
      Server::start({"no-such-host.invalid:0"}, {}, grpc::InsecureServerCredentials());
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().message.starts_with("listening on 'no-such-host.invalid:0': "))
      << none.error().message;
}

}  // namespace
}  // namespace muster::controller
