// What users ask of the controller at both doors, with a real shell and server: a user logs in with
// a personal token or by uid, and calls with what came of it. The decisions have tests of their own
// (tests/unit/controller_core).
#include "controller/enrol/logins.h"

#include <gmock/gmock.h>

#include <future>

#include "common/enrol/token.h"
#include "tests/unit/controller/cluster_fixture.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;

class LoginsTest : public ClusterTest {
 protected:
  static v1::CreateTokenRequest request_for(const std::string& user, const std::string& nodes) {
    v1::CreateTokenRequest request;
    request.set_user(user);
    request.set_nodes(nodes);
    request.set_uses(1);
    request.mutable_lifetime()->set_seconds(3'600);
    return request;
  }
  grpc::Status create(const std::shared_ptr<grpc::Channel>& by,
                      const v1::CreateTokenRequest& request) {
    return v1::CertificateService::NewStub(by)->CreateToken(context().get(), request, &made_);
  }
  enrol::Token token(const std::string& user) {
    const grpc::Status status = create(channel_, request_for(user, ""));
    EXPECT_TRUE(status.ok()) << status.error_message();
    return *enrol::parse_token(made_.text(), enrol::TokenKind::Login);
  }
  template <class Ask>
  Result<EnrolmentAnswer> asked(Logins& logins, Ask ask) {
    std::promise<Result<EnrolmentAnswer>> answered;
    logins.login(std::move(ask),
                 [&](Result<EnrolmentAnswer> answer) { answered.set_value(std::move(answer)); });
    return answered.get_future().get();
  }
  Result<EnrolmentAnswer> login(const enrol::Token& by, const pki::Key& key) {
    return asked(logins_, LoginAsk{.token = by.id,
                                   .secret = by.secret,
                                   .public_key = *key.public_der(),
                                   .lifetime = std::chrono::hours(2)});
  }
  Result<EnrolmentAnswer> by_uid(const std::string& user, const pki::Key& key) {
    return asked(logins_, SocketLoginAsk{.user = user,
                                         .uid = 1'000,
                                         .public_key = *key.public_der(),
                                         .lifetime = std::chrono::hours(2)});
  }
  static Result<pki::Credentials> with(const pki::Key& key, const EnrolmentAnswer& answer) {
    return pki::parse_credentials(*key.private_pem() + answer.certificate + answer.ca);
  }
  std::shared_ptr<grpc::Channel> channel_of(const pki::Credentials& credentials) {
    return rpc::make_channel(
        {.address = server_->bound()[1],
         .credentials = std::make_shared<const pki::Credentials>(credentials)});
  }
  grpc::Status listed(const std::shared_ptr<grpc::Channel>& channel) {
    v1::ListNodesResponse response;
    return v1::NodeService::NewStub(channel)->ListNodes(context().get(), {}, &response);
  }

  v1::CreateTokenResponse made_;
  Logins logins_{*controller_->shell, *authorities_, system_clock(), {server_->bound()[1]}};
  const pki::Key key_ = *pki::Key::generate(), next_ = *pki::Key::generate();
};

TEST_F(LoginsTest, AUserLogsInWithATokenAndCalls) {
  const enrol::Token by = token("ann");
  EXPECT_EQ(made_.token().user(), "ann");
  EXPECT_EQ(by.ca_digest, authority_->certificate().digest());
  const auto in = login(by, key_);
  ASSERT_TRUE(in) << in.error().message;
  EXPECT_EQ(in->user, "ann");
  EXPECT_EQ(in->addresses, std::vector<std::string>{server_->bound()[1]});
  const auto credentials = with(key_, *in);
  ASSERT_TRUE(credentials) << credentials.error().message;
  EXPECT_EQ(credentials->identity,
            (pki::Identity{.cluster = kCluster, .role = pki::Role::User, .name = "ann"}));
  EXPECT_LE(credentials->not_after - system_clock().now().wall, std::chrono::hours(2));
  EXPECT_TRUE(listed(channel_of(*credentials)).ok());
  EXPECT_TRUE(login(by, key_)) << "a retry";
  EXPECT_THAT(login(by, next_).error().message, HasSubstr("used up"));

  v1::RevokeCertificateRequest revoke;
  revoke.set_user("ann");
  revoke.set_why("left");
  v1::RevokeCertificateResponse revoked;
  ASSERT_TRUE(v1::CertificateService::NewStub(channel_)
                  ->RevokeCertificate(context().get(), revoke, &revoked)
                  .ok());
  EXPECT_EQ(revoked.certificates(), 1U);
  EXPECT_THAT(listed(channel_of(*credentials)).error_message(), HasSubstr("left"));
  EXPECT_THAT(by_uid("ann", next_).error().message, HasSubstr("left"));
}

TEST_F(LoginsTest, AUserLogsInByUid) {
  const auto in = by_uid("vera", key_);
  ASSERT_TRUE(in) << in.error().message;
  EXPECT_TRUE(listed(channel_of(*with(key_, *in))).ok());
  EXPECT_EQ(by_uid("no name", key_).error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(asked(logins_, SocketLoginAsk{.user = "ann", .public_key = "none", .lifetime = {}})
                .error()
                .code,
            ErrorCode::InvalidArgument);
}

TEST_F(LoginsTest, WithoutCallsOverTcpNoTokenIsUsed) {
  const enrol::Token by = token("ann");
  Logins nowhere(*controller_->shell, *authorities_, system_clock(), std::vector<std::string>());
  const auto refused = asked(nowhere, LoginAsk{.token = by.id,
                                               .secret = by.secret,
                                               .public_key = *key_.public_der(),
                                               .lifetime = std::chrono::hours(2)});
  EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
  EXPECT_TRUE(login(by, key_));
}

TEST_F(LoginsTest, NothingIsSignedForAWrongSecret) {
  enrol::Token wrong = token("ann");
  wrong.secret.back() = wrong.secret.back() == '0' ? '1' : '0';
  const auto refused = login(wrong, key_);
  EXPECT_EQ(refused.error().code, ErrorCode::NotAllowed);
  EXPECT_EQ(refused.error().message.find(wrong.secret), std::string::npos);
}

TEST_F(LoginsTest, AdminsMakePersonalTokensAndNoOthers) {
  access_.replace({.users = {{"ada", UserRole::Admin}, {"olga", UserRole::Operator}}});
  const auto ada = tcp(pki::Role::User, "ada"), olga = tcp(pki::Role::User, "olga");
  ASSERT_TRUE(create(ada, request_for("ann", "")).ok());
  EXPECT_EQ(made_.token().actor(), "ada");
  const grpc::Status joins = create(ada, request_for("", "n1"));
  EXPECT_THAT(joins.error_message(), HasSubstr("only the user who runs the controller may"));
  EXPECT_FALSE(create(ada, request_for("ann", "n1")).ok());
  EXPECT_FALSE(create(olga, request_for("ann", "")).ok());
  EXPECT_FALSE(create(tcp(pki::Role::Node, "n1"), request_for("ann", "")).ok());
}

}  // namespace
}  // namespace muster::controller
