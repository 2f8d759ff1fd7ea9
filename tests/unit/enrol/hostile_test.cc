// What anybody who reaches the enrolment port may do to it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>

#include "common/enrol/connection.h"
#include "common/enrol/frame.h"
#include "common/enrol/request.h"
#include "common/io/unique_fd.h"
#include "common/name_service/hosts.h"
#include "common/pki/signature.h"
#include "muster/v1/enrolment.pb.h"
#include "tests/unit/enrol/door.h"

namespace muster {
namespace {

using enrol::Connection;
using test::Door;
using Steady = std::chrono::steady_clock;

constexpr auto kLong = std::chrono::seconds(60);
constexpr controller::EnrolLimits kQuick{.most = std::chrono::milliseconds(400)};

// From 127.0.0.`from`.
io::UniqueFd connected(const Door& door, int from = 1) {
  io::UniqueFd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{}, to{};
  own.sin_family = to.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(0x7f000000U + static_cast<unsigned>(from));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(door.port());
  EXPECT_EQ(::bind(made.get(), reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
  EXPECT_EQ(::connect(made.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return made;
}

// Within `most`; what comes before the end is passed over.
bool ends(const io::UniqueFd& socket, std::chrono::milliseconds most) {
  const auto until = Steady::now() + most;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now()).count();
    pollfd waited{socket.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&waited, 1, static_cast<int>(left)) <= 0) return false;
    std::array<char, 4096> bytes;
    if (::recv(socket.get(), bytes.data(), bytes.size(), 0) <= 0) return true;
  }
}

bool joins(Door& door) {
  return enrol::join({.address = door.address(), .most = kLong}, door.token(), "n9",
                     *pki::Key::generate())
      .has_value();
}

class Within {
 public:
  explicit Within(const Door& door)
      : trusted_{.digests = {door.authority().certificate().digest()}, .refused = {}},
        connection_(Connection::open(door.address(), Steady::now() + kLong, -1, trusted_)) {}
  Connection& operator*() { return *connection_; }
  Connection* operator->() { return &*connection_; }
  std::string binding() { return *enrol::binding_of(connection_->tls()); }
  // Nothing: the connection ended without an answer.
  std::optional<v1::EnrolResponse> answer_to(std::string_view bytes) {
    if (!connection_->write(bytes)) return std::nullopt;
    const auto length = connection_->read(enrol::kLengthBytes);
    if (!length) return std::nullopt;
    enrol::LengthBytes header{};
    std::ranges::copy(*length, header.begin());
    v1::EnrolResponse response;
    if (!response.ParseFromString(*connection_->read(*enrol::length_in(header))))
      return std::nullopt;
    return response;
  }

 private:
  enrol::TrustedCas trusted_;
  Result<Connection> connection_;
};

std::string frame_of(const Result<std::string>& request) { return enrol::in_frame(*request); }

TEST(EnrolHostile, ARecordedRequestHasNoValueOnAnotherConnection) {
  Door door;
  Within first(door), second(door);
  ASSERT_NE(first.binding(), second.binding());
  const auto request =
      enrol::join_request(door.token(), "n1", *pki::Key::generate(), first.binding());
  const auto replayed = second.answer_to(frame_of(request));
  ASSERT_TRUE(replayed);
  EXPECT_TRUE(replayed->refused().is_final());
  EXPECT_NE(replayed->refused().sentence().find("not signed, for this connection"),
            std::string::npos);
  EXPECT_TRUE(door.asked().empty());
  const auto own = first.answer_to(frame_of(request));
  ASSERT_TRUE(own);
  EXPECT_TRUE(own->has_issued());
}

TEST(EnrolHostile, EveryKeyMustSign) {
  Door door;
  const pki::Key mine = *pki::Key::generate(), theirs = *pki::Key::generate();
  const auto changed = [&](auto change) {
    Within within(door);
    v1::EnrolRequest request;
    EXPECT_TRUE(request.ParseFromString(
        *enrol::renew_request("n1", mine, *pki::Key::generate(), within.binding())));
    change(*request.mutable_renew(), within.binding());
    return within.answer_to(enrol::in_frame(request.SerializeAsString()));
  };
  using Renew = v1::EnrolRequest::Renew;
  const auto nothing = [](Renew&, const std::string&) {};
  ASSERT_TRUE(changed(nothing)->has_issued());
  const std::size_t before = door.asked().size();
  // Somebody who has only the public key of the other one, which each certificate shows.
  const auto stolen = [&](Renew& renew, const std::string&) {
    renew.set_registered_key(*theirs.public_der());
  };
  const auto renamed = [](Renew& renew, const std::string&) { renew.set_node("n2"); };
  const auto other_key = [&](Renew& renew, const std::string&) {
    renew.set_public_key(*theirs.public_der());
  };
  const auto unsigned_one = [](Renew& renew, const std::string&) { renew.clear_signature(); };
  const auto unsigned_two = [](Renew& renew, const std::string&) {
    renew.clear_registered_signature();
  };
  const auto other_purpose = [&](Renew& renew, const std::string& binding) {
    renew.set_registered_signature(*pki::sign(
        mine, enrol::proof_text(enrol::Purpose::Join, binding, renew.public_key(), "n1")));
  };
  for (const auto& answer :
       {changed(stolen), changed(renamed), changed(other_key), changed(unsigned_one),
        changed(unsigned_two), changed(other_purpose)}) {
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->has_refused());
  }
  EXPECT_EQ(door.asked().size(), before);
}

TEST(EnrolHostile, LengthsThatNoRequestHas) {
  Door door;
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff", 4), std::string("\0\0\x40\x01", 4), std::string(4, '\0')}) {
    Within within(door);
    const auto answer = within.answer_to(bytes);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->refused().is_final());
  }
  EXPECT_TRUE(joins(door));
}

TEST(EnrolHostile, RandomRequests) {
  Door door;
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::string bytes(1 + random() % 2'000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    Within within(door);
    const auto answer = within.answer_to(enrol::in_frame(bytes));
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->has_refused());
  }
  EXPECT_TRUE(door.asked().empty());
}

TEST(EnrolHostile, RandomBytesWithoutTls) {
  Door door;
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    const io::UniqueFd socket = connected(door);
    std::string bytes(4'000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(ends(socket, kLong));
  }
  EXPECT_TRUE(joins(door));
}

TEST(EnrolHostile, Tls12IsRefused) {
  Door door;
  const enrol::TlsContext context(::SSL_CTX_new(::TLS_client_method()));
  ASSERT_EQ(::SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION), 1);
  const io::UniqueFd socket = connected(door);
  const enrol::TlsConnection tls(::SSL_new(context.get()));
  ASSERT_EQ(::SSL_set_fd(tls.get(), socket.get()), 1);
  EXPECT_NE(::SSL_connect(tls.get()), 1);
  EXPECT_EQ(::SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION), 1);
  const io::UniqueFd again = connected(door);
  const enrol::TlsConnection newer(::SSL_new(context.get()));
  ASSERT_EQ(::SSL_set_fd(newer.get(), again.get()), 1);
  EXPECT_EQ(::SSL_connect(newer.get()), 1);
}

TEST(EnrolHostile, SlowOnesAreEnded) {
  Door door(kQuick);
  // No handshake, half of one, and a request that comes a byte at a time.
  const io::UniqueFd silent = connected(door), half = connected(door);
  ASSERT_EQ(::send(half.get(), "\x16\x03\x01\x02\x00\x01\x00", 7, MSG_NOSIGNAL), 7);
  Within slow(door);
  ASSERT_TRUE(slow->write(std::string_view("\0\0\x40\0", enrol::kLengthBytes)));
  const auto end = Steady::now() + kLong;
  pollfd waited{::SSL_get_fd(slow->tls()), POLLIN, 0};
  while (Steady::now() < end && ::poll(&waited, 1, 50) == 0 && slow->write("x")) {
  }
  EXPECT_LT(Steady::now(), end);
  EXPECT_TRUE(ends(silent, kLong));
  EXPECT_TRUE(ends(half, kLong));
  EXPECT_TRUE(door.asked().empty());
}

TEST(EnrolHostile, AnAddressHasItsShare) {
  Door door;
  std::vector<io::UniqueFd> idle;
  for (std::size_t i = 0; i < controller::EnrolLimits().of_an_address; ++i)
    idle.push_back(connected(door));
  const io::UniqueFd surplus = connected(door);
  EXPECT_TRUE(ends(surplus, std::chrono::seconds(3))) << "it was not closed at once";
  const io::UniqueFd other = connected(door, 2);
  EXPECT_FALSE(ends(other, std::chrono::milliseconds(100)));
  idle.clear();  // their room is free again
  EXPECT_TRUE(joins(door));
}

TEST(EnrolHostile, ThreeHundredThatDoNothing) {
  Door door({.most = std::chrono::seconds(2)});
  std::vector<io::UniqueFd> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(connected(door, 10 + i / 10));
  const auto gone = std::ranges::count_if(
      idle, [](const io::UniqueFd& socket) { return ends(socket, std::chrono::milliseconds(0)); });
  EXPECT_LE(gone, 44);
  for (const io::UniqueFd& socket : idle) EXPECT_TRUE(ends(socket, kLong));
  EXPECT_TRUE(joins(door));
}

TEST(EnrolHostile, NoDescriptorIsLeft) {
  Door door;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // The connection waits in the kernel until the port can have a descriptor for it.
  const io::UniqueFd plain(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(door.port());
  const int connect_result = ::connect(plain.get(), reinterpret_cast<sockaddr*>(&to), sizeof to);
  // Bytes that are no TLS: a port that served it would end it.
  (void)::send(plain.get(), "nothing", 7, MSG_NOSIGNAL);
  const bool ended_without = ends(plain, std::chrono::milliseconds(250));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(connect_result, 0);
  EXPECT_FALSE(ended_without) << "there was a descriptor after all";
  EXPECT_TRUE(ends(plain, kLong));
  EXPECT_TRUE(joins(door));
}

TEST(EnrolAddress, AWildcardIsBothFamilies) {
  for (const char* wildcard : {"0.0.0.0:0", "[::]:0"}) {
    Door door({}, {}, wildcard);
    EXPECT_TRUE(door.address().starts_with(std::string(wildcard, std::string(wildcard).size() - 1)))
        << door.address();
    for (const char* host : {"127.0.0.1", "::1"}) {
      const auto to = name_service::socket_address(host, door.port());
      const io::UniqueFd client(::socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&*to),
                          name_service::size_of(*to)),
                0)
          << host << " at " << wildcard;
    }
  }
}

TEST(EnrolCount, FewDescriptorsAreNotAllForThisPort) {
  for (const std::size_t most : {8u, 64u, 200u, 256u, 1'023u}) {
    const auto limits = controller::enrol_limits_for(most);
    EXPECT_LE(limits.connections, std::max<std::size_t>(4, most / 4)) << most;
    EXPECT_GE(limits.connections, 4u) << most;
    EXPECT_GE(limits.of_an_address, 2u) << most;
    EXPECT_LE(limits.of_an_address, std::max<std::size_t>(2, limits.connections / 4)) << most;
  }
  EXPECT_EQ(controller::enrol_limits_for(200).connections, 50u);
  for (const std::size_t most : {std::size_t{1'024}, SIZE_MAX}) {
    EXPECT_EQ(controller::enrol_limits_for(most).connections, 256u);
    EXPECT_EQ(controller::enrol_limits_for(most).of_an_address, 16u);
  }
}

TEST(EnrolCount, SharesOfAddresses) {
  using Room = controller::ConnectionCount::Room;
  using boost::asio::ip::make_address;
  controller::ConnectionCount count({.connections = 5, .of_an_address = 2});
  EXPECT_EQ(count.enter(make_address("2001:db8::1")), Room::There);
  EXPECT_EQ(count.enter(make_address("2001:db8::2")), Room::There);
  EXPECT_EQ(count.enter(make_address("2001:db8::3")), Room::AddressFull) << "of one /64";
  EXPECT_EQ(count.enter(make_address("2001:db8:0:1::1")), Room::There);
  EXPECT_EQ(count.enter(make_address("::ffff:10.0.0.1")), Room::There);
  EXPECT_EQ(count.enter(make_address("10.0.0.1")), Room::There);
  EXPECT_EQ(count.enter(make_address("10.0.0.2")), Room::Full);
  count.leave(make_address("10.0.0.1"));
  EXPECT_EQ(count.enter(make_address("10.0.0.2")), Room::There);
}

}  // namespace
}  // namespace muster
