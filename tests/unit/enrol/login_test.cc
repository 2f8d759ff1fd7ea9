// Logins at both doors: the texts, the exchange at the port with a token, and at the socket without
// one.
#include "common/enrol/login.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/enrol/frame.h"
#include "common/enrol/request.h"
#include "common/enrol/socket_place.h"
#include "common/io/unique_fd.h"
#include "common/proto/proto_time.h"
#include "controller/enrol/login_socket.h"
#include "tests/unit/enrol/door.h"
#include "tests/unit/name_service/fake_host.h"

namespace muster {
namespace {

using std::chrono::hours;
using test::Door;
using testing::HasSubstr;

enrol::Token personal(const Door& door) {
  return {.id = "t1",
          .secret = "planted-secret",
          .ca_digest = door.authority().certificate().digest(),
          .kind = enrol::TokenKind::Login};
}

TEST(EnrolLogin, TokensOfUsersAndOfNodesAreApart) {
  const std::string ca(64, 'c');
  const std::string login = "muster-login-1:t1:planted-secret:" + ca;
  const auto token = enrol::parse_token(login, enrol::TokenKind::Login);
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_EQ(enrol::token_text(*token), login);
  EXPECT_THAT(enrol::parse_token(login).error().message, HasSubstr("personal token"));
  const auto join =
      enrol::parse_token("muster-join-1:t1:planted-secret:" + ca, enrol::TokenKind::Login);
  EXPECT_THAT(join.error().message, HasSubstr("token for nodes that join"));
}

TEST(EnrolLogin, TheRequestAtThePort) {
  const std::string binding(enrol::kBindingBytes, 'b');
  const pki::Key key = *pki::Key::generate();
  const enrol::Token token{
      .id = "t1", .secret = "s", .ca_digest = {}, .kind = enrol::TokenKind::Login};
  const auto bytes = enrol::login_request(token, key, hours(2), binding);
  const auto request = enrol::parse_request(*bytes);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->purpose, enrol::Purpose::Login);
  EXPECT_EQ(request->token_id, "t1");
  EXPECT_EQ(request->lifetime, hours(2));
  EXPECT_TRUE(enrol::check_proof(*request, binding));
  EXPECT_FALSE(enrol::check_proof(*request, std::string(enrol::kBindingBytes, 'c')));
  auto other = *enrol::parse_request(*bytes);
  other.token_id = "t2";
  EXPECT_FALSE(enrol::check_proof(other, binding)) << "the proof is of one token";
  const auto changed = [&](auto change) {
    v1::EnrolRequest unsound;
    EXPECT_TRUE(unsound.ParseFromString(*bytes));
    change(*unsound.mutable_login());
    const auto parsed = enrol::parse_request(unsound.SerializeAsString());
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(changed([](auto& login) { login.clear_lifetime(); }), "");
  EXPECT_THAT(changed([](auto& login) { login.clear_token_id(); }), HasSubstr("token"));
  EXPECT_THAT(changed([](auto& login) { login.clear_public_key(); }), HasSubstr("decode"));
  for (const Duration wrong : {Duration(hours(1)) - Duration(1),
                               Duration(hours(24 * 31)) + Duration(1), -Duration(hours(1))})
    EXPECT_THAT(changed([&](auto& login) { *login.mutable_lifetime() = to_proto(wrong); }),
                HasSubstr("1h to 31d"));
}

TEST(EnrolLogin, TheRequestAtTheSocket) {
  const pki::Key key = *pki::Key::generate();
  const auto login = enrol::parse_socket_login(*enrol::socket_login_request(key, hours(3)));
  ASSERT_TRUE(login) << login.error().message;
  EXPECT_EQ(login->public_key, *key.public_der());
  EXPECT_EQ(login->lifetime, hours(3));
  v1::EnrolRequest request;
  request.mutable_login()->set_public_key(*key.public_der());
  request.mutable_login()->set_token_id("t1");
  EXPECT_THAT(enrol::parse_socket_login(request.SerializeAsString()).error().message,
              HasSubstr("tokens are for the enrolment port"));
  request.mutable_join()->set_node("n1");
  EXPECT_THAT(enrol::parse_socket_login(request.SerializeAsString()).error().message,
              HasSubstr("nothing else"));
  EXPECT_FALSE(enrol::parse_socket_login("\xff"));
  EXPECT_FALSE(enrol::parse_socket_login(std::string(enrol::kFrameBytesMost + 1, '\0')));
}

TEST(EnrolLogin, WithATokenAtThePort) {
  Door door;
  const pki::Key key = *pki::Key::generate();
  const auto issued = enrol::login({.address = door.address()}, personal(door), key, hours(5));
  ASSERT_TRUE(issued) << issued.error().message;
  EXPECT_EQ(issued->user, "ann");
  EXPECT_EQ(issued->addresses, std::vector<std::string>{"127.0.0.1:7070"});
  ASSERT_EQ(door.asked().size(), 1U);
  EXPECT_EQ(door.asked()[0].token, "t1");
  EXPECT_EQ(door.asked()[0].secret, "planted-secret");
  EXPECT_EQ(door.asked()[0].public_key, *key.public_der());
  EXPECT_EQ(door.asked()[0].lifetime, hours(5));
}

class LoginSocketTest : public testing::Test {
 protected:
  void start(controller::LoginSocketOptions options = {}) {
    options.path = path();
    options.own = {.name = "owner", .uid = ::geteuid() + 1};
    options.tables = host_.tables();
    auto started = controller::LoginSocket::start(
        options,
        [this](controller::SocketLoginAsk ask, controller::Enrolments::Done done) {
          const std::lock_guard lock(mutex_);
          asked_.push_back(ask);
          if (!answers_) return;
          done(controller::EnrolmentAnswer{.certificate = "certificate",
                                           .ca = "ca",
                                           .user = ask.user,
                                           .addresses = {"0.0.0.0:1"}});
        },
        system_clock());
    ASSERT_TRUE(started) << started.error().message;
    socket_ = std::move(*started);
  }
  void passwd(const std::string& name, std::uint32_t uid = ::geteuid()) {
    host_.write("passwd", name + ":x:" + std::to_string(uid) + ":1::/:/bin/sh\n");
  }
  [[nodiscard]] std::string path() const { return host_.file("login/s"); }
  Result<enrol::Issued> login() {
    return enrol::login_at_socket(path(), *pki::Key::generate(), hours(1));
  }
  std::vector<controller::SocketLoginAsk> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  // A connection that has sent these bytes.
  io::UniqueFd raw(const std::string& bytes) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::ranges::copy(path(), to.sun_path);
    io::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    if (!bytes.empty()) {
      EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
    }
    return fd;
  }
  static std::string all_of(const io::UniqueFd& fd) {
    std::string all(20'000, '\0');
    std::size_t size = 0;
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(fd.get(), all.data() + size, all.size() - size, 0);
      if (got > 0) size += static_cast<std::size_t>(got);
    }
    all.resize(size);
    return all;
  }

  name_service::FakeHost host_;
  std::mutex mutex_;
  std::vector<controller::SocketLoginAsk> asked_;
  bool answers_ = true;
  std::unique_ptr<controller::LoginSocket> socket_;
};

TEST_F(LoginSocketTest, TheKernelAndTheHostSayWhoCalls) {
  passwd("ann");
  start();
  struct stat status{};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0666U);
  const auto issued = login();
  ASSERT_TRUE(issued) << issued.error().message;
  EXPECT_EQ(issued->user, "ann");
  EXPECT_EQ(issued->addresses, std::vector<std::string>{"0.0.0.0:1"});
  ASSERT_EQ(asked().size(), 1U);
  EXPECT_EQ(asked()[0].uid, ::geteuid());
  EXPECT_EQ(asked()[0].lifetime, hours(1));
  socket_->stop();
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(login().error().code, ErrorCode::NotFound);
}

TEST_F(LoginSocketTest, NamesThatAreNotTheCallersAlone) {
  start();
  host_.write("passwd", "");
  EXPECT_THAT(login().error().message, HasSubstr("no user with uid"));
  passwd("DOM\\ann");
  EXPECT_THAT(login().error().message, HasSubstr("none that a certificate can have"));
  passwd("owner");
  EXPECT_THAT(login().error().message, HasSubstr("also the name of another uid"));
  const std::string me = std::to_string(::geteuid());
  host_.write("passwd", "ann:x:" + std::to_string(::geteuid() + 7) + ":1::/:\nann:x:" + me +
                            ":1::/:/bin/sh\nann:x:" + std::to_string(::geteuid() + 7) +
                            ":1::/:/bin/sh\n");
  EXPECT_EQ(login().error().code, ErrorCode::NotAllowed);
  EXPECT_TRUE(asked().empty());
}

TEST_F(LoginSocketTest, WhatNobodySends) {
  passwd("ann");
  start();
  for (const std::string& bytes :
       {std::string("\0\0\x40\x01", 4), std::string("\0\0\0\0", 4), enrol::in_frame("\xff\xff")}) {
    const std::string answer = all_of(raw(bytes));
    v1::EnrolResponse response;
    ASSERT_GT(answer.size(), enrol::kLengthBytes);
    ASSERT_TRUE(response.ParseFromString(answer.substr(enrol::kLengthBytes)));
    EXPECT_TRUE(response.refused().is_final());
  }
  EXPECT_TRUE(login()) << "nobody is kept out by that";
}

TEST_F(LoginSocketTest, ConnectionsHaveBounds) {
  passwd("ann");
  start({.path = {}, .own = {}, .of_a_user = 2, .most = std::chrono::seconds(2)});
  const auto first = raw({}), second = raw({});
  const auto third = raw({});
  EXPECT_THAT(all_of(third), HasSubstr("this user has its share of the connections; try again"));
  EXPECT_THAT(login().error().message, HasSubstr("this user has its share")) << "it is told so";
  EXPECT_EQ(all_of(first), "") << "closed when its time is over";
  EXPECT_EQ(all_of(second), "");
  EXPECT_TRUE(login());
}

// One user can have a range of many uids (/etc/subuid, containers).
TEST_F(LoginSocketTest, ManyUidsOfOneUserLeaveRoomForOthers) {
  if (::setresuid(100'000, 100'000, 0) != 0) GTEST_SKIP() << "this process can have no other uid";
  ASSERT_EQ(::setresuid(0, 0, 0), 0);
  passwd("ann");
  start({.path = {}, .own = {}, .connections = 5, .of_a_user = 2, .of_a_block = 3});
  std::filesystem::permissions(std::filesystem::path(path()).parent_path().parent_path(),
                               std::filesystem::perms(0755));
  const auto as = [&](std::uint32_t uid) {
    EXPECT_EQ(::setresuid(uid, uid, 0), 0);
    auto fd = raw({});
    EXPECT_EQ(::setresuid(0, 0, 0), 0);
    return fd;
  };
  const auto first = as(100'000), second = as(100'001), third = as(100'002);
  EXPECT_THAT(all_of(as(100'003)), HasSubstr("users with uids near this one have their share"));
  EXPECT_TRUE(login()) << "there is room for another user";
}

// Users of a company's directory have such uids, too: two of them must not shut out all others.
TEST_F(LoginSocketTest, AUidOfABlockHasAQuarterOfIt) {
  if (::setresuid(100'000, 100'000, 0) != 0) GTEST_SKIP() << "this process can have no other uid";
  ASSERT_EQ(::setresuid(0, 0, 0), 0);
  start({.path = {},
         .own = {},
         .of_a_user = 8,
         .of_a_block = 4,
         .most = std::chrono::milliseconds(500)});
  std::filesystem::permissions(std::filesystem::path(path()).parent_path().parent_path(),
                               std::filesystem::perms(0755));
  const auto as = [&](std::uint32_t uid) {
    EXPECT_EQ(::setresuid(uid, uid, 0), 0);
    auto fd = raw({});
    EXPECT_EQ(::setresuid(0, 0, 0), 0);
    return fd;
  };
  const auto first = as(100'000);
  EXPECT_THAT(all_of(as(100'000)), HasSubstr("this user has its share of the connections"));
  const auto second = as(100'001);
  EXPECT_THAT(all_of(second), testing::Not(HasSubstr("share"))) << "served until its time is over";
}

TEST_F(LoginSocketTest, AnAnswerThatNeverComes) {
  passwd("ann");
  answers_ = false;
  start({.path = {}, .own = {}, .most = std::chrono::milliseconds(300)});
  EXPECT_EQ(login().error().code, ErrorCode::Unreachable);
}

TEST_F(LoginSocketTest, NobodyElseMayReplaceIt) {
  passwd("ann");
  start();
  const auto second = controller::LoginSocket::start(
      {.path = path(), .own = {}}, [](auto, auto) {}, system_clock());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another controller serves this socket"));
  const std::string dir = std::filesystem::path(path()).parent_path();
  ASSERT_EQ(::chmod(dir.c_str(), 0777), 0);
  EXPECT_THAT(login().error().message, HasSubstr("could put a socket of their own there"));
  socket_->stop();
  const auto open = controller::LoginSocket::start(
      {.path = path(), .own = {}}, [](auto, auto) {}, system_clock());
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, ErrorCode::NotAllowed);
  EXPECT_EQ(enrol::check_socket_place("relative").error().code, ErrorCode::InvalidArgument);
}

TEST_F(LoginSocketTest, NobodyElseMayReplaceADirectoryAboveIt) {
  const std::filesystem::path dir = std::filesystem::path(path()).parent_path();
  std::filesystem::create_directories(dir / "of the site" / "muster");
  ASSERT_EQ(::chmod(dir.c_str(), 0755), 0);
  const std::filesystem::path socket = dir / "of the site" / "muster" / "s";
  EXPECT_TRUE(enrol::check_socket_place(socket));
  for (const mode_t open : {0777U, 0775U}) {
    ASSERT_EQ(::chmod((dir / "of the site").c_str(), open), 0);
    const auto refused = enrol::check_socket_place(socket);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::NotAllowed);
    EXPECT_THAT(refused.error().message,
                HasSubstr("others may write in '" + (dir / "of the site").string() + "'"));
  }
  // A link is as good as the directory that has it, and as what it leads to.
  std::filesystem::create_directory_symlink(dir / "of the site" / "muster", dir / "link");
  EXPECT_FALSE(enrol::check_socket_place(dir / "link" / "s"));
  ASSERT_EQ(::chmod((dir / "of the site").c_str(), 01777), 0);
  EXPECT_TRUE(enrol::check_socket_place(socket)) << "each may replace only what is his";
  EXPECT_TRUE(enrol::check_socket_place(dir / "link" / "s"));
}

TEST_F(LoginSocketTest, ItsDirectoryIsOfRootOrOfTheController) {
  constexpr std::uint32_t kOther = 4'321, kController = 1'234;
  const std::filesystem::path dir = std::filesystem::path(path()).parent_path();
  std::filesystem::create_directories(dir);
  std::uint32_t owner = ::geteuid();
  if (owner == 0 && ::chown(dir.c_str(), kController, static_cast<gid_t>(-1)) == 0)
    owner = kController;
  if (owner == 0) GTEST_SKIP() << "root may not give a directory away here";
  EXPECT_TRUE(enrol::check_socket_owner(path(), owner));
  const auto other = enrol::check_socket_owner(path(), kOther);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::NotAllowed);
  EXPECT_THAT(other.error().message, HasSubstr("belongs to uid " + std::to_string(owner)));
}

TEST(PeerUser, TheUidOfOtherNamespacesIsNobody) {
  name_service::FakeHost host;
  host.write("passwd", "nobody:x:65534:65534::/:/bin/sh\n");
  const auto user = controller::user_of_peer(65'534, {}, host.tables());
  ASSERT_FALSE(user);
  EXPECT_THAT(user.error().message, HasSubstr("user namespace"));
}

}  // namespace
}  // namespace muster
