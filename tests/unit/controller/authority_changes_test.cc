// A change of the CA at a real server, with an agent driven by hand.
#include "controller/api/authority_changes.h"

#include <gtest/gtest.h>

#include "common/pki/key.h"
#include "tests/unit/controller/cluster_fixture.h"

namespace muster::controller {
namespace {

class CaChanges : public ClusterTest {
 protected:
  CaChanges() : service_(v1::CertificateService::NewStub(channel_)) {}

  grpc::Status publish(v1::ChangeAuthorityResponse& response, const std::string& certificate = {},
                       const std::string& key = {}) {
    v1::ChangeAuthorityRequest request;
    request.mutable_publish()->set_certificate(certificate);
    request.mutable_publish()->set_key(key);
    return service_->ChangeAuthority(context().get(), request, &response);
  }
  grpc::Status sign(v1::ChangeAuthorityResponse& response) {
    v1::ChangeAuthorityRequest request;
    request.mutable_sign();
    return service_->ChangeAuthority(context().get(), request, &response);
  }
  grpc::Status drop(v1::ChangeAuthorityResponse& response, bool force = false) {
    v1::ChangeAuthorityRequest request;
    request.mutable_drop();
    request.set_force(force);
    return service_->ChangeAuthority(context().get(), request, &response);
  }
  // The one in this state.
  static v1::Authority in(const v1::ChangeAuthorityResponse& response, v1::AuthorityState state) {
    for (const v1::Authority& one : response.authorities()) {
      if (one.state() == state) return one;
    }
    ADD_FAILURE() << "no CA in state " << state << ": " << response.DebugString();
    return {};
  }
  std::shared_ptr<grpc::Channel> issued(const std::string& user) {
    const auto key = pki::Key::generate();
    v1::IssueCertificateRequest request;
    request.set_user(user);
    request.set_public_key(*key->public_pem());
    request.mutable_lifetime()->set_seconds(3'600);
    v1::IssueCertificateResponse response;
    const grpc::Status status = service_->IssueCertificate(context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    auto credentials =
        pki::parse_credentials(*key->private_pem() + response.certificate() + response.ca());
    return rpc::make_channel(
        {.address = server_->bound()[1],
         .credentials = std::make_shared<const pki::Credentials>(std::move(*credentials))});
  }
  grpc::Status call(const std::shared_ptr<grpc::Channel>& channel) {
    v1::GetClusterStatusResponse response;
    return v1::NodeService::NewStub(channel)->GetClusterStatus(
        context().get(), v1::GetClusterStatusRequest(), &response);
  }
  static bool report(HandAgent& agent, const std::vector<std::string>& trusted,
                     const std::string& signer) {
    v1::Heartbeat heartbeat;
    heartbeat.set_number(1'000);
    v1::HostReading& host = *heartbeat.mutable_host();
    host.mutable_certificate_ends()->set_seconds(4'000'000'000);
    host.mutable_trusted_authorities()->Assign(trusted.begin(), trusted.end());
    host.set_certificate_authority(signer);
    agent.say(heartbeat);
    v1::ConnectResponse response;
    return agent.until([](const auto& read) { return read.has_heartbeat_ack(); }, response);
  }
  static v1::Authorities trusted(HandAgent& agent) {
    v1::ConnectResponse response;
    EXPECT_TRUE(agent.until([](const auto& read) { return read.has_authorities(); }, response));
    return response.authorities();
  }

  std::unique_ptr<v1::CertificateService::Stub> service_;
};

TEST_F(CaChanges, AWholeRotationWithALiveAgent) {
  const std::string first = authority_->certificate().digest();
  HandAgent agent(tcp(pki::Role::Node, "n1"));
  HandAgent local(channel_);
  ASSERT_TRUE(agent.connect(HandAgent::hello("n1", "i1")));
  ASSERT_TRUE(local.connect(HandAgent::hello("n2", "i2")));
  ASSERT_TRUE(report(agent, {first}, first));
  {
    v1::Heartbeat unix_socket;  // has no certificate, and is never waited for
    unix_socket.mutable_host()->set_state_dir("/s");
    local.say(unix_socket);
    ASSERT_TRUE(local.heartbeat_acknowledged());
  }
  const auto old_user = issued("vera");

  v1::ChangeAuthorityResponse response;
  grpc::Status status = publish(response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::string second = in(response, v1::AUTHORITY_STATE_NEXT).sha256();
  ASSERT_EQ(in(response, v1::AUTHORITY_STATE_NEXT).waiting_nodes_size(), 1);
  EXPECT_EQ(in(response, v1::AUTHORITY_STATE_NEXT).waiting_nodes(0), "n1");
  EXPECT_EQ(in(response, v1::AUTHORITY_STATE_SIGNING).sha256(), first);
  EXPECT_TRUE(trusted(agent).ca().contains("BEGIN CERTIFICATE")) << "it goes on, and learns of it";
  EXPECT_EQ(publish(response).error_code(), grpc::StatusCode::ABORTED);

  status = sign(response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_TRUE(status.error_message().contains("do not trust the next CA yet: n1;"))
      << status.error_message();
  ASSERT_TRUE(report(agent, {first, second}, first));
  status = sign(response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(in(response, v1::AUTHORITY_STATE_SIGNING).sha256(), second);
  EXPECT_EQ(in(response, v1::AUTHORITY_STATE_OLD).user_certificates(), 1U);
  EXPECT_EQ(trusted(agent).signing(), second);
  const auto new_user = issued("olga");
  EXPECT_TRUE(call(new_user).ok());
  EXPECT_TRUE(call(old_user).ok()) << "it counts until the old CA is dropped";
  const auto away = tcp(pki::Role::Node, "n3");
  HandAgent back(away);
  EXPECT_TRUE(back.connect(HandAgent::hello("n3", "i3"))) << "it knows the old CA alone";
  ASSERT_TRUE(report(back, {first, second}, second));

  status = drop(response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_TRUE(status.error_message().contains("no certificate of the new CA yet: n1;"))
      << status.error_message();
  ASSERT_TRUE(report(agent, {first, second}, second));
  status = drop(response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.authorities_size(), 1);
  EXPECT_EQ(response.authorities(0).sha256(), second);

  // Its stream began with a certificate of the old CA.
  EXPECT_TRUE(agent.status().error_message().contains(
      "the certificate of node 'n1' is of a CA that was dropped"));
  status = call(old_user);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(status.error_message().contains("is of a CA that was dropped; a user gets a new one"))
      << status.error_message();
  EXPECT_FALSE(call(tcp(pki::Role::User, "vera")).ok()) << "a new connection with the old CA";
  EXPECT_TRUE(call(new_user).ok());
  EXPECT_TRUE(call(issued("vera")).ok());
  EXPECT_TRUE(local.heartbeat_acknowledged()) << "the unix socket goes on";
}

// When the old CA is dropped, a node that is away and has nothing of the new one has no way back.
TEST(WaitingNodes, AreAlsoThoseThatAreAway) {
  core::Ledger ledger;
  core::Presence presence;
  const WallTime signs(std::chrono::seconds(1'800'000'000));
  ledger.access.authorities.signs_since = signs;
  const auto node = [&](const std::string& name, std::uint64_t connection,
                        const char* signer) {  // null: it has reported nothing
    ledger.nodes[NodeName(name)].name = NodeName(name);
    if (connection == 0 && signer == nullptr) return;
    core::NodeSeen& seen = presence.nodes[NodeName(name)];
    seen.connection = ConnectionId(connection);
    if (signer == nullptr) return;
    seen.host.emplace().mutable_certificate_ends()->set_seconds(4'000'000'000);
    seen.host->set_certificate_authority(signer);
  };
  const auto issued = [&](const std::string& name, WallTime at) {
    ledger.access.certificates[{.role = core::SubjectRole::Node, .name = name}]["k"].issued_at = at;
  };
  node("a-connected-old", 1, "old");
  node("b-connected-new", 2, "new");
  node("c-away-old", 0, "old");
  node("d-away-new", 0, "new");
  node("e-never-heard", 0, nullptr);
  node("f-never-heard-new", 0, nullptr);
  issued("f-never-heard-new", signs);
  node("g-never-heard-old", 0, nullptr);
  issued("g-never-heard-old", signs - std::chrono::hours(1));
  node("h-dead", 0, nullptr);
  ledger.nodes[NodeName("h-dead")].dead = true;
  node("i-away-unix", 0, "");
  presence.nodes[NodeName("i-away-unix")].host->clear_certificate_ends();
  EXPECT_EQ(signed_by(ledger, presence, "old"),
            (std::vector<std::string>{"a-connected-old", "c-away-old", "g-never-heard-old"}))
      << "e has no certificate, so none of the old CA";
}

TEST_F(CaChanges, AnImportedCaSignsAtOnceWhereNothingWasIssued) {
  // Of another name, as a company has it.
  const auto made = *pki::Authority::make("company", system_clock().now().wall);
  v1::ChangeAuthorityResponse response;
  grpc::Status status = publish(response, made.certificate().pem(), *made.key_pem());
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.authorities_size(), 1);
  EXPECT_EQ(response.authorities(0).sha256(), made.certificate().digest());
  EXPECT_TRUE(response.authorities(0).imported());
  EXPECT_EQ(response.authorities(0).state(), v1::AUTHORITY_STATE_SIGNING);
  EXPECT_TRUE(call(issued("vera")).ok());
}

TEST_F(CaChanges, AnImportedCaIsPublishedWhereCertificatesAre) {
  (void)issued("vera");
  const auto made = *pki::Authority::make("company", system_clock().now().wall);
  const auto other = *pki::Authority::make("company", system_clock().now().wall);
  v1::ChangeAuthorityResponse response;
  grpc::Status status = publish(response, made.certificate().pem(), *other.key_pem());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(status.error_message().starts_with("importing a CA: ")) << status.error_message();
  EXPECT_EQ(publish(response, made.certificate().pem()).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(publish(response, std::string(20'000, 'x'), std::string(20'000, 'x')).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  status = publish(response, made.certificate().pem(), *made.key_pem());
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(in(response, v1::AUTHORITY_STATE_NEXT).imported());
  // It is aborted, and its key goes.
  ASSERT_TRUE(drop(response).ok());
  EXPECT_EQ(response.authorities_size(), 1);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "pki" / "next.pem"));
  v1::ChangeAuthorityRequest nothing;
  EXPECT_EQ(service_->ChangeAuthority(context().get(), nothing, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CaChanges, NoStepFollowsOneThatWasNotCarriedOut) {
  v1::ChangeAuthorityResponse response;
  ASSERT_TRUE(publish(response).ok());
  // Its place is taken, so that the step is decided and its files cannot be made.
  const std::filesystem::path ca = dir_ / "pki" / "ca.pem";
  std::filesystem::remove(ca);
  std::filesystem::create_directories(ca / "taken");
  EXPECT_TRUE(sign(response).error_message().contains("the step was decided"));
  const auto size = std::filesystem::file_size(dir_ / "pki" / "next.pem");
  for (const grpc::Status& status : {drop(response, true), publish(response), sign(response)}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
    EXPECT_TRUE(status.error_message().contains("decided and not carried out"))
        << status.error_message();
  }
  EXPECT_EQ(std::filesystem::file_size(dir_ / "pki" / "next.pem"), size);
}

TEST_F(CaChanges, NothingIsIssuedByTheOldCaWhileTheFilesOfTheNewOneAreMissing) {
  v1::ChangeAuthorityResponse response;
  ASSERT_TRUE(publish(response).ok());
  const auto before = issued("vera");
  std::filesystem::create_directories(dir_ / "pki" / "old.pem");
  EXPECT_TRUE(sign(response).error_message().contains("the step was decided"));

  const auto refused = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
    EXPECT_TRUE(status.error_message().contains("does not have its files in place yet"))
        << status.error_message();
  };
  v1::IssueCertificateRequest issue;
  issue.set_user("olga");
  issue.set_public_key(*pki::Key::generate()->public_pem());
  issue.mutable_lifetime()->set_seconds(3'600);
  v1::IssueCertificateResponse certificate;
  refused(service_->IssueCertificate(context().get(), issue, &certificate));
  EXPECT_TRUE(certificate.certificate().empty()) << "it was signed, and must not leave";
  v1::CreateTokenRequest create;
  create.set_nodes("n1");
  create.set_uses(1);
  create.mutable_lifetime()->set_seconds(3'600);
  v1::CreateTokenResponse token;
  refused(service_->CreateToken(context().get(), create, &token));
  EXPECT_TRUE(token.text().empty());
  EXPECT_TRUE(call(before).ok()) << "what there was counts";
}

}  // namespace
}  // namespace muster::controller
