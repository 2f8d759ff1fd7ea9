#include <gmock/gmock.h>

#include <future>
#include <thread>
#include <vector>

#include "common/pki/authority.h"
#include "controller/api/bounded.h"
#include "tests/unit/controller/hand_node.h"

namespace muster::controller {
namespace {

using Services = ClusterTest;

TEST_F(Services, AJobIsSubmittedShownListedAndCancelled) {
  const std::string id = submitted("one");
  EXPECT_EQ(id.size(), kJobIdLength);
  EXPECT_EQ(job("one").id(), id);
  EXPECT_EQ(job(id.substr(0, 11)).id(), id);
  EXPECT_EQ(job("@last").phase(), v1::JOB_PHASE_QUEUED);
  v1::CancelJobRequest cancel;
  cancel.set_job("one");
  v1::CancelJobResponse cancelled;
  ASSERT_TRUE(stub_->CancelJob(context().get(), cancel, &cancelled).ok());
  EXPECT_EQ(cancelled.phase(), v1::JOB_PHASE_CANCELLED);
  EXPECT_EQ(job("one").phase(), v1::JOB_PHASE_CANCELLED);  // by the name of a finished job
  v1::ListJobsRequest list;
  v1::ListJobsResponse listed;
  ASSERT_TRUE(stub_->ListJobs(context().get(), list, &listed).ok());
  EXPECT_EQ(listed.jobs_size(), 0);
  list.set_all(true);
  ASSERT_TRUE(stub_->ListJobs(context().get(), list, &listed).ok());
  EXPECT_EQ(listed.jobs_size(), 1);
}

TEST_F(Services, ARetriedSubmissionIsTheSameJob) {
  v1::SubmitJobResponse first, second;
  ASSERT_TRUE(submit("one", first, "retry-me").ok());
  ASSERT_TRUE(submit("one", second, "retry-me").ok());
  EXPECT_EQ(first.job_id(), second.job_id());
  EXPECT_FALSE(first.repeated_request());
  EXPECT_TRUE(second.repeated_request());
}

TEST_F(Services, RefusalsSayWhy) {
  v1::SubmitJobResponse response;
  ASSERT_TRUE(submit("one", response).ok());
  const grpc::Status taken = submit("one", response);
  EXPECT_EQ(taken.error_code(), grpc::StatusCode::ABORTED) << taken.error_message();
  v1::SubmitJobRequest bad;
  *bad.mutable_spec() = spec("Not A Name");
  bad.mutable_spec()->set_engine("none such");
  const grpc::Status wrong = stub_->SubmitJob(context().get(), bad, &response);
  EXPECT_EQ(wrong.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(wrong.error_message().find("engine"), std::string::npos) << wrong.error_message();
  EXPECT_NE(wrong.error_message().find("name"), std::string::npos) << wrong.error_message();
  low_on_space_ = true;
  EXPECT_EQ(submit("two", response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  v1::GetJobRequest get;
  get.set_job("nobody");
  v1::GetJobResponse got;
  EXPECT_EQ(stub_->GetJob(context().get(), get, &got).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(Services, ASubmissionMayBeRefusedBeforeItsTextIsRead) {
  v1::SubmitJobResponse response;
  v1::SubmitJobRequest request;
  request.mutable_yaml()->set_text("name: [");
  const grpc::Status unread = stub_->SubmitJob(context().get(), request, &response);
  EXPECT_EQ(unread.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(unread.error_message().find("job.yaml:"), std::string::npos) << unread.error_message();
  request.set_request_id(std::string(129, 'r'));
  const grpc::Status long_id = stub_->SubmitJob(context().get(), request, &response);
  EXPECT_EQ(long_id.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(long_id.error_message(), "submitting a job: request_id has 129 bytes, at most 128");
  request.clear_request_id();
  low_on_space_ = true;
  const auto refused = [&] {
    const grpc::Status status = stub_->SubmitJob(context().get(), request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    return status.error_message().substr(0, status.error_message().find(','));
  };
  EXPECT_EQ(refused(), "submitting a job: the controller's disk is nearly full");
  request.clear_yaml();
  *request.mutable_spec() = spec("one");
  EXPECT_EQ(refused(), "submitting job 'one': the controller's disk is nearly full");
  *request.mutable_spec() = spec("Not A Name");
  EXPECT_EQ(refused(), "submitting a job: the controller's disk is nearly full");
}

TEST_F(Services, PagesAreNewestFirstAndMeetAtTheirTokens) {
  std::vector<std::string> ids;
  for (int i = 0; i < 7; ++i) ids.insert(ids.begin(), submitted("job" + std::to_string(i)));
  for (const bool all : {false, true}) {
    std::vector<std::string> seen;
    v1::ListJobsRequest list;
    list.set_page_size(3);
    list.set_all(all);
    do {
      v1::ListJobsResponse page;
      ASSERT_TRUE(stub_->ListJobs(context().get(), list, &page).ok());
      EXPECT_LE(page.jobs_size(), 3);
      for (const v1::Job& one : page.jobs()) seen.push_back(one.id());
      list.set_page_token(page.next_page_token());
    } while (!list.page_token().empty());
    EXPECT_EQ(seen, ids);
  }
}

grpc::Status status_of_cluster(const std::shared_ptr<grpc::Channel>& channel,
                               grpc::ClientContext& context) {
  v1::GetClusterStatusResponse response;
  return v1::NodeService::NewStub(channel)->GetClusterStatus(&context, {}, &response);
}

TEST_F(Services, CallersOverTcpNeedACertificateOfThisCluster) {
  EXPECT_EQ(status_of_cluster(rpc::make_channel({.address = server_->bound()[1]}), *context())
                .error_code(),
            grpc::StatusCode::UNAVAILABLE)
      << "no TLS at all";
  const auto stranger = pki::Authority::make(kCluster, system_clock().now().wall);
  ASSERT_TRUE(stranger);
  EXPECT_EQ(status_of_cluster(tcp(pki::Role::User, "ann", &*stranger), *context()).error_code(),
            grpc::StatusCode::UNAVAILABLE)
      << "another authority's";
  EXPECT_TRUE(status_of_cluster(tcp(pki::Role::User, "ann"), *context()).ok());
}

TEST_F(Services, ANodeCallsNoMethodOfUsersAndAUserNoneOfNodes) {
  const grpc::Status node = status_of_cluster(tcp(pki::Role::Node, "n1"), *context());
  EXPECT_EQ(node.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(node.error_message(),
            "calling muster.v1.NodeService/GetClusterStatus as node 'n1': only a user may");
  HandAgent agent(tcp(pki::Role::User, "ann"));
  EXPECT_EQ(agent.status().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  v1::IssueCertificateRequest request;
  v1::IssueCertificateResponse response;
  for (const auto& channel : {tcp(pki::Role::Node, "n1"), tcp(pki::Role::User, "ann")})
    EXPECT_EQ(v1::CertificateService::NewStub(channel)
                  ->IssueCertificate(context().get(), request, &response)
                  .error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(Services, ANodeSpeaksOnlyForItself) {
  HandAgent other(tcp(pki::Role::Node, "n2"));
  EXPECT_FALSE(other.connect(HandAgent::hello("n1", "i1")));
  const grpc::Status status = other.status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(status.error_message(),
            "connecting an agent: the certificate is of node 'n2'; a node speaks only for itself "
            "(--name, --credentials)");
  v1::FetchFilesRequest fetch;
  fetch.set_node("n1");
  const auto stub = v1::AgentService::NewStub(tcp(pki::Role::Node, "n2"));
  const auto fetching = context();
  EXPECT_EQ(stub->FetchFiles(fetching.get(), fetch)->Finish().error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  v1::SendFilesResponse sent;
  const auto sending = context();
  const auto writer = stub->SendFiles(sending.get(), &sent);
  v1::SendFilesRequest ticket;
  ticket.mutable_ticket()->set_node("n1");
  writer->Write(ticket);
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  const std::string why =
      ": the certificate is of node 'n2'; a node speaks only for itself (--name, --credentials)";
  EXPECT_THAT(controller_->refusals(),
              testing::UnorderedElementsAre("connecting an agent" + why,
                                            "fetching files of another node" + why,
                                            "sending files to another node" + why));
  HandAgent own(tcp(pki::Role::Node, "n2"));
  EXPECT_TRUE(own.connect(HandAgent::hello("n2", "i2")));
}

// Regression: what a node said of others' attempts counted for nothing, and nobody could see that
// it had said it.
TEST_F(Services, ANodeThatSpeaksOfOthersAttemptsIsWrittenDown) {
  HandAgent one(tcp(pki::Role::Node, "n1"));
  ASSERT_TRUE(one.connect(HandAgent::hello("n1", "i1")));
  const std::string id = submitted("theirs");
  ASSERT_TRUE(one.order(id, v1::Order::kRun));
  HandAgent other(tcp(pki::Role::Node, "n2"));
  ASSERT_TRUE(other.connect(HandAgent::hello("n2", "i2", 0)));
  v1::Fact fact;
  fact.set_job_id(id);
  fact.set_attempt(1);
  fact.mutable_exited()->set_rank(0);
  fact.mutable_exited()->set_code(3);
  other.say(fact);
  EXPECT_TRUE(other.acknowledged()) << "saying it again would not change the answer";
  EXPECT_EQ(job(id).phase(), v1::JOB_PHASE_LAUNCHING) << "nothing of it counts";
  v1::FetchFilesRequest fetch;
  fetch.set_node("n2");
  fetch.set_job_id(id);
  fetch.set_attempt(1);
  const auto fetching = context();
  EXPECT_EQ(v1::AgentService::NewStub(tcp(pki::Role::Node, "n2"))
                ->FetchFiles(fetching.get(), fetch)
                ->Finish()
                .error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  const std::string why = " of job '" + id +
                          "' attempt 1: node 'n2' has no part of it, so nothing of that is taken; "
                          "look after that node";
  EXPECT_THAT(controller_->refusals(),
              testing::ElementsAre("reporting facts" + why, "fetching files" + why));
  // Its own, and an attempt that nobody has, are no such thing.
  one.say(fact);
  EXPECT_TRUE(one.acknowledged());
  fact.set_attempt(9);
  other.say(fact);
  EXPECT_TRUE(other.acknowledged());
  EXPECT_EQ(controller_->refusals().size(), 2u);
}

TEST_F(Services, CertificatesAreIssuedOverTheSocket) {
  const auto stub = v1::CertificateService::NewStub(channel_);
  const auto key = pki::Key::generate();
  ASSERT_TRUE(key);
  v1::IssueCertificateRequest request;
  request.set_public_key(*key->public_pem());
  request.set_node("n1");
  request.mutable_lifetime()->set_seconds(3'600);
  v1::IssueCertificateResponse response;
  const auto issue = [&] { return stub->IssueCertificate(context().get(), request, &response); };
  ASSERT_TRUE(issue().ok());
  const auto credentials =
      pki::parse_credentials(*key->private_pem() + response.certificate() + response.ca());
  ASSERT_TRUE(credentials) << credentials.error().message;
  EXPECT_EQ(credentials->identity,
            (pki::Identity{.cluster = kCluster, .role = pki::Role::Node, .name = "n1"}));
  HandAgent agent(
      rpc::make_channel({.address = server_->bound()[1],
                         .credentials = std::make_shared<const pki::Credentials>(*credentials)}));
  EXPECT_TRUE(agent.connect(HandAgent::hello("n1", "i1")));

  request.mutable_lifetime()->set_seconds(3'599);
  EXPECT_EQ(issue().error_message(),
            "issuing a certificate for node 'n1': its lifetime must be 1h to 3650d");
  request.mutable_lifetime()->set_seconds(3'600);
  request.set_user("../x");
  EXPECT_EQ(issue().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_user("ann");
  request.set_public_key("none");
  EXPECT_EQ(issue().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(Services, ARevocationEndsStreamsAndRefusesCalls) {
  const auto certificates = v1::CertificateService::NewStub(channel_);
  const auto revoke = [&](const auto& set) {
    v1::RevokeCertificateRequest request;
    set(request);
    request.set_why("lost");
    v1::RevokeCertificateResponse response;
    const grpc::Status status =
        certificates->RevokeCertificate(context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  };
  const auto n1 = tcp(pki::Role::Node, "n1"), n2 = tcp(pki::Role::Node, "n2"),
             ann = tcp(pki::Role::User, "ann");
  HandAgent lost(n1), other(n2);
  ASSERT_TRUE(lost.connect(HandAgent::hello("n1", "i1")));
  ASSERT_TRUE(other.connect(HandAgent::hello("n2", "i2")));
  const auto agents = v1::AgentService::NewStub(n1);
  v1::SendFilesResponse sent;
  const auto sending = context();
  const auto files = agents->SendFiles(sending.get(), &sent);
  const auto watching = context();
  v1::WatchResponse event;
  const auto watch = v1::JobService::NewStub(ann)->Watch(watching.get(), v1::WatchRequest());
  ASSERT_TRUE(watch->Read(&event)) << "it is open";

  revoke([](auto& request) { request.set_node("n1"); });
  const std::string sentence =
      "calling the controller: the certificate of node 'n1' was revoked: lost";
  EXPECT_EQ(lost.status().error_message(), sentence);
  EXPECT_EQ(files->Finish().error_message(), sentence);
  HandAgent again(n1);
  EXPECT_EQ(again.status().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(status_of_cluster(ann, *context()).ok());
  HandAgent back(n2);
  EXPECT_TRUE(back.connect(HandAgent::hello("n2", "i2"))) << "others go on";

  revoke([](auto& request) { request.set_user("ann"); });
  while (watch->Read(&event)) {
  }
  EXPECT_EQ(watch->Finish().error_message(),
            "calling the controller: the certificate of user 'ann' was revoked: lost");
  EXPECT_EQ(status_of_cluster(ann, *context()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(status_of_cluster(channel_, *context()).ok()) << "the owner has no certificate";
}

// The bound on how long a revoked caller still sees a stream: the end is asked for in the turn that
// releases the durable event, by its thread and before the answer. No timer is between them.
TEST_F(Services, StreamsOfTheRevokedEndBeforeTheRevocationIsAnswered) {
  const Now now = system_clock().now();
  std::vector<std::thread::id> ended;
  const auto stay = revocations_.enter(
      {.is_owner = false,
       .identity = pki::Identity{.cluster = kCluster, .role = pki::Role::User, .name = "ann"},
       .key = "k",
       .not_before = now.wall - pki::kClockDifference},
      [&](const grpc::Status&) { ended.push_back(std::this_thread::get_id()); });
  std::promise<void> answered;
  ASSERT_TRUE(controller_->shell->submit(
      core::RevokeCertificate{
          .subject = core::Subject{.role = core::SubjectRole::User, .name = "ann"},
          .serial = {},
          .why = "left",
          .actor = kOwnUser},
      now, [&](const Outcome& outcome, const View&) {
        EXPECT_FALSE(outcome.refusal) << outcome.refusal->message;
        EXPECT_EQ(ended, std::vector{std::this_thread::get_id()});
        answered.set_value();
      }));
  ASSERT_EQ(answered.get_future().wait_for(kPatience), std::future_status::ready);
}

// A paused controller writes nothing, and still somebody must be able to take rights away.
TEST_F(Services, ARevocationWhileTheControllerPausesCountsAtOnce) {
  const auto certificates = v1::CertificateService::NewStub(channel_);
  v1::CreateTokenRequest create;
  create.set_nodes("gpu-*");
  create.set_uses(1);
  create.mutable_lifetime()->set_seconds(3'600);
  v1::CreateTokenResponse created;
  ASSERT_TRUE(certificates->CreateToken(context().get(), create, &created).ok());
  const auto n1 = tcp(pki::Role::Node, "n1"), ann = tcp(pki::Role::User, "ann"),
             eve = tcp(pki::Role::User, "eve");
  HandAgent lost(n1);
  ASSERT_TRUE(lost.connect(HandAgent::hello("n1", "i1")));
  const auto watching = context();
  v1::WatchResponse event;
  const auto watch = v1::JobService::NewStub(ann)->Watch(watching.get(), v1::WatchRequest());
  ASSERT_TRUE(watch->Read(&event)) << "it is open";
  v1::Hello hello = HandAgent::hello("n2", "i2");
  {
    HandAgent known(channel_);
    ASSERT_TRUE(known.connect(hello));
  }
  hello.set_cluster_id(kCluster);
  hello.set_acked_index(1'000'000);
  HandAgent telling(channel_);
  telling.say(hello);
  ASSERT_EQ(telling.status().error_code(), grpc::StatusCode::UNAVAILABLE);

  const auto revoke = [&](const auto& set) {
    v1::RevokeCertificateRequest request;
    set(request);
    request.set_why("lost");
    v1::RevokeCertificateResponse response;
    return certificates->RevokeCertificate(context().get(), request, &response);
  };
  const grpc::Status unwritten = revoke([](auto& request) { request.set_user("ann"); });
  EXPECT_EQ(unwritten.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_TRUE(unwritten.error_message().starts_with(
      "revoking the certificates of user 'ann': from now on it counts, and streams have ended, but "
      "it is not written down, and the controller's next start forgets it: then revoke again"))
      << unwritten.error_message();
  EXPECT_TRUE(unwritten.error_message().contains("the controller pauses: "));
  while (watch->Read(&event)) {
  }
  EXPECT_EQ(watch->Finish().error_message(),
            "calling the controller: the certificate of user 'ann' was revoked: lost");
  EXPECT_EQ(revoke([](auto& request) { request.set_node("n1"); }).error_code(),
            grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(lost.status().error_message(),
            "calling the controller: the certificate of node 'n1' was revoked: lost");
  EXPECT_EQ(status_of_cluster(ann, *context()).error_code(), grpc::StatusCode::UNAUTHENTICATED)
      << "the second revocation does not undo the first";
  EXPECT_TRUE(status_of_cluster(eve, *context()).ok());
  EXPECT_EQ(revoke([](auto& request) { request.set_serial("none"); }).error_code(),
            grpc::StatusCode::NOT_FOUND);

  v1::RevokeTokenRequest token;
  token.set_id(created.token().id());
  v1::RevokeTokenResponse revoked;
  const grpc::Status refused = certificates->RevokeToken(context().get(), token, &revoked);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_TRUE(refused.error_message().contains("nobody gets in with a token while"))
      << refused.error_message();
}

TEST_F(Services, TokensAndCertificatesAreListed) {
  const auto stub = v1::CertificateService::NewStub(channel_);
  v1::CreateTokenRequest create;
  create.set_nodes("gpu-*");
  create.set_uses(2);
  create.mutable_lifetime()->set_seconds(3'600);
  v1::CreateTokenResponse created;
  ASSERT_TRUE(stub->CreateToken(context().get(), create, &created).ok());
  EXPECT_EQ(created.token().nodes(), "gpu-*");
  const std::string id = created.token().id();
  EXPECT_TRUE(created.text().starts_with("muster-join-1:" + id + ":")) << created.text();
  EXPECT_TRUE(created.text().ends_with(":" + authority_->certificate().digest()));
  v1::ListTokensResponse tokens;
  ASSERT_TRUE(stub->ListTokens(context().get(), v1::ListTokensRequest(), &tokens).ok());
  ASSERT_EQ(tokens.tokens_size(), 1);
  v1::RevokeTokenRequest revoke;
  revoke.set_id(id);
  v1::RevokeTokenResponse revoked;
  ASSERT_TRUE(stub->RevokeToken(context().get(), revoke, &revoked).ok());
  EXPECT_TRUE(revoked.token().has_revoked_at());
  revoke.set_id("\x1b[2J");
  EXPECT_EQ(stub->RevokeToken(context().get(), revoke, &revoked).error_code(),
            grpc::StatusCode::NOT_FOUND);
  create.set_uses(0);
  EXPECT_EQ(stub->CreateToken(context().get(), create, &created).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  const auto key = pki::Key::generate();
  v1::IssueCertificateRequest issue;
  issue.set_public_key(*key->public_pem());
  issue.set_user("ann");
  issue.mutable_lifetime()->set_seconds(3'600);
  v1::IssueCertificateResponse issued;
  ASSERT_TRUE(stub->IssueCertificate(context().get(), issue, &issued).ok());
  v1::ListCertificatesResponse listed;
  ASSERT_TRUE(stub->ListCertificates(context().get(), v1::ListCertificatesRequest(), &listed).ok());
  ASSERT_EQ(listed.certificates_size(), 1) << "the fact is there before the answer";
  EXPECT_EQ(listed.certificates(0).user(), "ann");
  EXPECT_EQ(listed.certificates(0).key_sha256(), key->public_digest());
  EXPECT_EQ(listed.certificates(0).actor(), "owner");
}

TEST_F(Services, AWatchEndsWithItsJob) {
  const std::string id = submitted("one");
  auto watching = context();
  v1::WatchRequest request;
  request.set_job("one");
  request.set_until_final(true);
  const auto reader = stub_->Watch(watching.get(), request);
  v1::WatchResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.event().type(), "job-submitted");
  v1::CancelJobRequest cancel;
  cancel.set_job(id);
  v1::CancelJobResponse cancelled;
  ASSERT_TRUE(stub_->CancelJob(context().get(), cancel, &cancelled).ok());
  std::string last;
  while (reader->Read(&response)) last = response.event().type();
  EXPECT_EQ(last, "job-ended");
  EXPECT_TRUE(reader->Finish().ok());
  // Once more, after its end: the same history, the same end.
  auto again = context();
  const auto second = stub_->Watch(again.get(), request);
  int events = 0;
  while (second->Read(&response)) ++events;
  EXPECT_TRUE(second->Finish().ok());
  EXPECT_EQ(events, 3);
}

TEST_F(Services, APlanIsShownEvenWithoutANode) {
  v1::PlanJobRequest request;
  *request.mutable_spec() = spec("one");
  v1::PlanJobResponse response;
  const grpc::Status status = stub_->PlanJob(context().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(response.waits_for().empty());
  ASSERT_EQ(response.ranks_size(), 1);
  EXPECT_EQ(response.ranks(0).argv(0), "true");
}

// core/submission_warnings.h has the reason: warnings about an accepted job that may not run as its
// user meant are in the answer, and in the answer of a plan.
TEST_F(HandNodeTest, ASubmissionIsAnsweredWithItsWarnings) {
  for (const char* name : {"n0", "n1"}) {
    put(core::RegisterNode{.node = NodeName(name),
                           .instance = InstanceId("i1"),
                           .boot_id = BootId(name),
                           .inventory = HandAgent::hello(name, "i1").inventory()},
        core::Connected{.node = NodeName(name),
                        .connection = ConnectionId(7),
                        .instance = InstanceId("i1"),
                        .boot_id = BootId(name)});
  }
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec("wide");
  request.mutable_spec()->mutable_resources()->set_nodes(2);
  v1::PlanJobRequest plan;
  *plan.mutable_spec() = request.spec();
  v1::PlanJobResponse planned;
  ASSERT_TRUE(stub_->PlanJob(context().get(), plan, &planned).ok());
  ASSERT_EQ(planned.warnings_size(), 1);
  EXPECT_NE(planned.warnings(0).find("nothing says that they share '/out/plan'"), std::string::npos)
      << planned.warnings(0);
  v1::SubmitJobResponse response;
  ASSERT_TRUE(stub_->SubmitJob(context().get(), request, &response).ok());
  ASSERT_EQ(response.warnings_size(), 1);
  EXPECT_NE(response.warnings(0).find("share '/out/" + response.job_id() + "'"), std::string::npos)
      << response.warnings(0);
  v1::SubmitJobResponse one;
  ASSERT_TRUE(submit("narrow", one).ok());
  EXPECT_EQ(one.warnings_size(), 0);
}

// Regression: a spec of a few lines may require a million ranks, and all of their environments at
// once took gigabytes.
TEST_F(Services, APlanOfManyRanksIsGivenRankByRank) {
  v1::PlanJobRequest request;
  *request.mutable_spec() = spec("one");
  request.mutable_spec()->mutable_resources()->set_nodes(1024);
  request.mutable_spec()->mutable_resources()->set_devices(1024);
  v1::PlanJobResponse response;
  const grpc::Status all = stub_->PlanJob(context().get(), request, &response);
  EXPECT_EQ(all.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(all.error_message(),
            "planning job 'one' of 1048576 ranks: more than 16384 at once; ask for fewer of them "
            "(--rank)");
  request.add_ranks(1'048'575);
  const grpc::Status last = stub_->PlanJob(context().get(), request, &response);
  ASSERT_TRUE(last.ok()) << last.error_message();
  ASSERT_EQ(response.ranks_size(), 1);
  EXPECT_EQ(response.ranks(0).rank(), 1'048'575);
  EXPECT_EQ(response.ranks(0).node(), "node-1023");
  request.set_ranks(0, 1'048'576);
  const grpc::Status none = stub_->PlanJob(context().get(), request, &response);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(none.error_message(),
            "planning job 'one': it has no rank 1048576; there are ranks 0..1048575");
  request.clear_ranks();
  request.mutable_spec()->mutable_resources()->set_nodes(1025);
  const grpc::Status more = stub_->PlanJob(context().get(), request, &response);
  EXPECT_EQ(more.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(more.error_message().find("resources.nodes: with 1024 devices each these are 1049600 "
                                      "devices, at most 1048576 a job"),
            std::string::npos)
      << more.error_message();
}

class SlowWatcher : public ClusterTest {
 protected:
  SlowWatcher() : ClusterTest(16) {}
};

TEST_F(SlowWatcher, IsClosedWithItsIndexAndCanResume) {
  auto watching = context();
  // a thousand jobs come and go in the meantime
  watching->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
  // Its connection has a small window that does not grow: it is full after some hundred events.
  grpc::ChannelArguments small;
  small.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  small.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  const auto narrow = v1::JobService::NewStub(
      grpc::CreateCustomChannel(server_->bound()[0], grpc::InsecureChannelCredentials(), small));
  const auto reader = narrow->Watch(watching.get(), v1::WatchRequest());
  v1::WatchResponse response;
  ASSERT_TRUE(reader->Read(&response));
  // Nobody reads: first the connection's window fills (hence the long reasons), then the queue.
  for (int i = 0; i < 1'000; ++i) {
    v1::CancelJobRequest cancel;
    cancel.set_job(submitted("job-" + std::to_string(i)));
    cancel.set_reason(std::string(kReasonBytesMax, 'x'));
    v1::CancelJobResponse cancelled;
    ASSERT_TRUE(stub_->CancelJob(context().get(), cancel, &cancelled).ok());
  }
  std::uint64_t last = response.event().index();
  while (reader->Read(&response)) {
    EXPECT_EQ(response.event().index(), last + 1);
    last = response.event().index();
  }
  const grpc::Status status = reader->Finish();
  ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << status.error_message() << " at " << last;
  EXPECT_NE(status.error_message().find("from_index=" + std::to_string(last)), std::string::npos)
      << status.error_message() << " but read up to " << last;
  auto again = context();
  v1::WatchRequest resume;
  resume.set_from_index(last);
  const auto resumed = stub_->Watch(again.get(), resume);
  ASSERT_TRUE(resumed->Read(&response));
  EXPECT_EQ(response.event().index(), last + 1);
}

}  // namespace
}  // namespace muster::controller
