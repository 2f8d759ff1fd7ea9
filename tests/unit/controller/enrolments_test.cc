// What the enrolment port asks of the controller, with a real shell and server: a node joins with a
// token, calls with what it got, renews, and neither after a revocation. The decisions have tests
// of their own (tests/unit/controller_core).
#include "controller/enrol/enrolments.h"

#include <gmock/gmock.h>

#include <future>

#include "common/enrol/token.h"
#include "tests/unit/controller/cluster_fixture.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;

class EnrolmentsTest : public ClusterTest {
 protected:
  enrol::Token token(const std::string& nodes) {
    v1::CreateTokenRequest request;
    request.set_nodes(nodes);
    request.set_uses(1);
    request.mutable_lifetime()->set_seconds(3'600);
    v1::CreateTokenResponse response;
    const grpc::Status status = service().CreateToken(context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return *enrol::parse_token(response.text());
  }
  v1::CertificateService::Stub& service() {
    if (service_ == nullptr) service_ = v1::CertificateService::NewStub(channel_);
    return *service_;
  }
  template <class Ask>
  Result<EnrolmentAnswer> asked(Ask ask) {
    std::promise<Result<EnrolmentAnswer>> answered;
    ask([&](Result<EnrolmentAnswer> answer) { answered.set_value(std::move(answer)); });
    return answered.get_future().get();
  }
  Result<EnrolmentAnswer> join(const enrol::Token& by, const std::string& node,
                               const pki::Key& key) {
    return asked([&](Enrolments::Done done) {
      enrolments_.join(
          {.token = by.id, .secret = by.secret, .node = node, .public_key = *key.public_der()},
          std::move(done));
    });
  }
  Result<EnrolmentAnswer> renew(const pki::Key& registered, const pki::Key& next) {
    return asked([&](Enrolments::Done done) {
      enrolments_.renew({.node = "n1",
                         .registered = registered.public_digest(),
                         .public_key = *next.public_der()},
                        std::move(done));
    });
  }
  static Result<pki::Credentials> with(const pki::Key& key, const EnrolmentAnswer& answer) {
    return pki::parse_credentials(*key.private_pem() + answer.certificate + answer.ca);
  }
  bool welcomed(const pki::Credentials& credentials) {
    HandAgent agent(
        rpc::make_channel({.address = server_->bound()[1],
                           .credentials = std::make_shared<const pki::Credentials>(credentials)}));
    return agent.connect(HandAgent::hello("n1", "i1"));
  }

  std::unique_ptr<v1::CertificateService::Stub> service_;
  Enrolments enrolments_{*controller_->shell, *authorities_, system_clock()};
  const pki::Key key_ = *pki::Key::generate(), next_ = *pki::Key::generate();
};

TEST_F(EnrolmentsTest, ANodeJoinsRenewsAndIsRevoked) {
  const enrol::Token by = token("n*");
  EXPECT_EQ(by.ca_digest, authority_->certificate().digest());
  const auto joined = join(by, "n1", key_);
  ASSERT_TRUE(joined) << joined.error().message;
  const auto credentials = with(key_, *joined);
  ASSERT_TRUE(credentials) << credentials.error().message;
  EXPECT_EQ(credentials->identity,
            (pki::Identity{.cluster = kCluster, .role = pki::Role::Node, .name = "n1"}));
  const Duration left = credentials->not_after - system_clock().now().wall;
  EXPECT_GT(left, std::chrono::hours(24 * 30 - 1));
  EXPECT_LE(left, std::chrono::hours(24 * 30));
  EXPECT_TRUE(welcomed(*credentials));
  EXPECT_TRUE(join(by, "n1", key_)) << "a retry";
  EXPECT_EQ(join(by, "n2", next_).error().code, ErrorCode::NotAllowed);

  const auto renewed = renew(key_, next_);
  ASSERT_TRUE(renewed) << renewed.error().message;
  EXPECT_TRUE(welcomed(*with(next_, *renewed)));
  EXPECT_EQ(renew(*pki::Key::generate(), next_).error().code, ErrorCode::NotAllowed);

  v1::RevokeCertificateRequest revoke;
  revoke.set_node("n1");
  revoke.set_why("lost");
  v1::RevokeCertificateResponse revoked;
  ASSERT_TRUE(service().RevokeCertificate(context().get(), revoke, &revoked).ok());
  EXPECT_EQ(revoked.certificates(), 2U);
  EXPECT_FALSE(welcomed(*with(next_, *renewed)));
  EXPECT_THAT(renew(next_, next_).error().message, HasSubstr("was revoked at"));
  EXPECT_THAT(join(by, "n1", key_).error().message, HasSubstr("was revoked at"));
}

TEST_F(EnrolmentsTest, TheNextCaIsInNoAnswer) {
  const WallTime now = system_clock().now().wall;
  const auto copy = [](const pki::Authority& one) {
    return *pki::Authority::adopt(one.certificate().pem(), *one.key_pem(), kCluster);
  };
  const auto other = *pki::Authority::make(kCluster, now);
  const std::string signing = authority_->certificate().pem();
  const enrol::Token by = token("n*");
  authorities_->replace(
      *authorities_now({.signing = copy(*authority_), .next = copy(other), .old = {}}, now));
  const auto joined = join(by, "n1", key_);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(joined->ca, signing);
  authorities_->replace(
      *authorities_now({.signing = copy(*authority_), .next = {}, .old = copy(other)}, now));
  EXPECT_EQ(renew(key_, next_)->ca, signing + other.certificate().pem());
}

TEST_F(EnrolmentsTest, WhatMakesNoSenseIsRefusedAtOnce) {
  const enrol::Token by = token("n*");
  for (const char* name : {"", "../x", "a b"})
    EXPECT_EQ(join(by, name, key_).error().code, ErrorCode::InvalidArgument) << name;
  const auto no_key = asked([&](Enrolments::Done done) {
    enrolments_.join({.token = by.id, .secret = by.secret, .node = "n1", .public_key = "none"},
                     std::move(done));
  });
  EXPECT_EQ(no_key.error().code, ErrorCode::InvalidArgument);
  enrol::Token wrong = by;
  wrong.secret.back() = wrong.secret.back() == '0' ? '1' : '0';
  const auto refused = join(wrong, "n1", key_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::NotAllowed);
  EXPECT_EQ(refused.error().message.find(wrong.secret), std::string::npos);
  // The token is looked at first: not even the key is read for somebody without a sound one.
  const auto unread = asked([&](Enrolments::Done done) {
    enrolments_.join(
        {.token = wrong.id, .secret = wrong.secret, .node = "n1", .public_key = "none"},
        std::move(done));
  });
  EXPECT_EQ(unread.error().code, ErrorCode::NotAllowed);
  EXPECT_EQ(unread.error().message, refused.error().message);
  EXPECT_TRUE(join(by, "n1", key_)) << "nothing of it counted as a use";
}

}  // namespace
}  // namespace muster::controller
