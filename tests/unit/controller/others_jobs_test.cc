// Regression story: one method that does not ask whose job it is about shows it to everybody. So
// each method of the table that needs a right to another user's job is called here for one, over
// TLS. A method that is added gets its case from its descriptor, or this test asks for one.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/access/call_rules.h"
#include "tests/unit/controller/hand_node.h"

namespace muster::controller {
namespace {

using google::protobuf::Message;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSecret = "alices-own-words";

class OthersJobs : public HandNodeTest {
 protected:
  struct Answer {
    grpc::Status status;
    std::string bytes;  // of all messages
  };

  // Any method: a request, then whatever comes until the end.
  static Answer call(const std::shared_ptr<grpc::Channel>& channel, std::string_view method,
                     const Message& request) {
    grpc::GenericStub stub(channel);
    grpc::CompletionQueue queue;
    const auto made = context();
    const auto stream = stub.PrepareCall(made.get(), std::string(method), &queue);
    const auto waited = [&] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    stream->StartCall(nullptr);
    const grpc::Slice slice(request.SerializeAsString());
    const grpc::ByteBuffer buffer(&slice, 1);
    bool going = waited();
    if (going) {
      stream->WriteLast(buffer, grpc::WriteOptions(), nullptr);
      waited();
    }
    Answer answer;
    while (going) {
      grpc::ByteBuffer message;
      stream->Read(&message, nullptr);
      going = waited();
      std::vector<grpc::Slice> slices;
      if (!going || !message.Dump(&slices).ok()) continue;
      for (const grpc::Slice& one : slices)
        answer.bytes.append(reinterpret_cast<const char*>(one.begin()), one.size());
    }
    stream->Finish(&answer.status, nullptr);
    waited();
    queue.Shutdown();
    while (waited()) {
    }
    return answer;
  }

  // A request of this method that is about the job.
  static std::unique_ptr<Message> request_about(std::string_view method, const std::string& job) {
    std::string name(method.substr(1));
    std::ranges::replace(name, '/', '.');
    const auto* found = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
    if (found == nullptr) return nullptr;
    std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                         ->GetPrototype(found->input_type())
                                         ->New());
    if (const auto* field = found->input_type()->FindFieldByName("job")) {
      request->GetReflection()->SetString(request.get(), field, job);
      if (const auto* until = found->input_type()->FindFieldByName("until_final"))
        request->GetReflection()->SetBool(request.get(), until, true);
      return request;
    }
    v1::JobSpec behind = spec("behind");
    v1::InputSpec& input = *behind.add_inputs();
    input.set_name("data");
    input.set_from("job:" + job + "/data");
    if (auto* submit = dynamic_cast<v1::SubmitJobRequest*>(request.get())) {
      *submit->mutable_spec() = behind;
    } else if (auto* plan = dynamic_cast<v1::PlanJobRequest*>(request.get())) {
      *plan->mutable_spec() = behind;
    } else if (auto* list = dynamic_cast<v1::ListJobsRequest*>(request.get())) {
      list->set_all(true);
    } else if (auto* stages = dynamic_cast<v1::FindStagesRequest*>(request.get())) {
      stages->add_stages()->set_job_name("alices.stage");
    } else {
      return nullptr;
    }
    return request;
  }

  // Alice's job, which has ended.
  std::string alices() {
    const auto channel = tcp(pki::Role::User, "alice");
    const auto stub = v1::JobService::NewStub(channel);
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec("alices");
    request.mutable_spec()->set_description(kSecret);
    request.mutable_spec()->mutable_launch()->add_run(kSecret);
    v1::SubmitJobResponse submitted;
    const grpc::Status taken = stub->SubmitJob(context().get(), request, &submitted);
    EXPECT_TRUE(taken.ok()) << taken.error_message();
    if (job(submitted.job_id()).attempts_size() > 0) {  // a node has it
      succeed(submitted.job_id());
      return submitted.job_id();
    }
    v1::CancelJobRequest cancel;
    cancel.set_job(submitted.job_id());
    cancel.set_reason(kSecret);
    v1::CancelJobResponse cancelled;
    EXPECT_TRUE(stub->CancelJob(context().get(), cancel, &cancelled).ok());
    return submitted.job_id();
  }

  // Each method of the table that needs a right to the job; `shows`: those that show its words.
  void ask_for(const std::string& job, const std::set<std::string_view>& shows) {
    const auto alice = tcp(pki::Role::User, "alice"), bob = tcp(pki::Role::User, "bob"),
               olga = tcp(pki::Role::User, "olga");
    std::size_t checked = 0;
    for (const CallRule& rule : call_rules()) {
      if (rule.right == JobRight::None) continue;
      SCOPED_TRACE(rule.method);
      const auto request = request_about(rule.method, job);
      ASSERT_NE(request, nullptr) << "say how to ask this method for another user's job";
      const Answer others = call(bob, rule.method, *request);
      EXPECT_THAT(others.bytes, Not(HasSubstr(kSecret)));
      EXPECT_THAT(others.status.error_message(), Not(HasSubstr(kSecret)));
      if (rule.without == Without::Refused) {
        EXPECT_EQ(others.status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
        EXPECT_THAT(others.status.error_message(), HasSubstr("it is of user 'alice'"));
      } else {
        EXPECT_TRUE(others.status.ok()) << others.status.error_message();
      }
      for (const auto& entitled : {alice, olga, channel_}) {
        const Answer whole = call(entitled, rule.method, *request);
        EXPECT_NE(whole.status.error_code(), grpc::StatusCode::PERMISSION_DENIED)
            << whole.status.error_message();
        if (shows.contains(rule.method)) {
          EXPECT_THAT(whole.bytes, HasSubstr(kSecret)) << whole.status.error_message();
        }
      }
      ++checked;
    }
    EXPECT_GE(checked, 12U);
  }
  static constexpr std::string_view kGetJob = "/muster.v1.JobService/GetJob",
                                    kListJobs = "/muster.v1.JobService/ListJobs",
                                    kWatch = "/muster.v1.JobService/Watch",
                                    kGetRankLaunch = "/muster.v1.JobService/GetRankLaunch";
};

// bob was told to cancel alice's job, which he may not.
TEST_F(OthersJobs, ANameThatIsTakenIsOfSomebody) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec("taken");
  const auto submit = [&](const char* user) {
    v1::SubmitJobResponse response;
    const auto channel = tcp(pki::Role::User, user);
    return v1::JobService::NewStub(channel)
        ->SubmitJob(context().get(), request, &response)
        .error_message();
  };
  EXPECT_EQ(submit("alice"), "");
  const std::string job = this->job("taken").id();
  EXPECT_EQ(submit("bob"),
            "submitting job 'taken': the name is taken by job '" + job +
                "', which is queued; it is of user 'alice': choose another name, or ask 'alice' or "
                "an operator to cancel it");
  EXPECT_EQ(submit("alice"), "submitting job 'taken': the name is taken by job '" + job +
                                 "', which is queued; choose another name, or `muster cancel " +
                                 job + "` first");
}

TEST_F(OthersJobs, EachMethodAsksWhoseJobItIs) { ask_for(alices(), {kGetJob, kListJobs, kWatch}); }

// Of a job that has run there is more to show: its launch, its files, its ends.
TEST_F(OthersJobs, EachMethodAsksWhoseJobWithAnAttemptItIs) {
  node();
  const std::string job = alices();
  ASSERT_EQ(this->job(job).attempts_size(), 1);
  ask_for(job, {kGetJob, kListJobs, kGetRankLaunch});
}

// Tokens and certificates are listed over the unix socket alone: their events are for operators.
TEST_F(OthersJobs, EventsOfTokensHaveNoTextForUsers) {
  const auto service = v1::CertificateService::NewStub(channel_);
  v1::CreateTokenRequest make;
  make.set_nodes("planted-*");
  make.set_uses(1);
  make.mutable_lifetime()->set_seconds(3'600);
  v1::CreateTokenResponse made;
  const grpc::Status taken = service->CreateToken(context().get(), make, &made);
  ASSERT_TRUE(taken.ok()) << taken.error_message();
  const auto text_for = [](const std::shared_ptr<grpc::Channel>& channel) {
    const auto stub = v1::JobService::NewStub(channel);
    const auto call = context();
    const auto stream = stub->Watch(call.get(), v1::WatchRequest());
    v1::WatchResponse answer;
    while (stream->Read(&answer) && answer.event().type() != "token-created") {
    }
    call->TryCancel();
    EXPECT_EQ(answer.event().type(), "token-created");
    EXPECT_GT(answer.event().index(), 0U);
    EXPECT_TRUE(answer.event().has_at());
    return answer.event().text();
  };
  EXPECT_EQ(text_for(tcp(pki::Role::User, "bob")), "for operators only");
  EXPECT_EQ(text_for(tcp(pki::Role::User, "vera")), "for operators only");
  for (const auto& entitled : {tcp(pki::Role::User, "olga"), channel_})
    EXPECT_THAT(text_for(entitled), HasSubstr("planted-*"));
}

// Regression: an unknown owner counted as the user who runs the controller.
TEST_F(OthersJobs, EventsOfAForgottenJobAreNobodysOwn) {
  const JobId id(alices());
  put(core::ProposeArchive{.job = id});
  put(core::ProposeDropTombstone{.job = id});
  const auto texts_for = [&](const std::shared_ptr<grpc::Channel>& channel) {
    const auto stub = v1::JobService::NewStub(channel);
    const auto call = context();
    const auto stream = stub->Watch(call.get(), v1::WatchRequest());
    v1::WatchResponse answer;
    std::string texts;
    while (stream->Read(&answer)) {
      if (answer.event().job_id() != id.str()) continue;
      texts += answer.event().text() + "\n";
      if (answer.event().type() == "tombstone-dropped") break;
    }
    call->TryCancel();
    EXPECT_EQ(answer.event().type(), "tombstone-dropped");
    return texts;
  };
  for (const char* user : {kOwnUser, "alice", "bob"}) {
    const std::string texts = texts_for(tcp(pki::Role::User, user));
    EXPECT_THAT(texts, Not(HasSubstr(kSecret))) << user;
    EXPECT_THAT(texts, HasSubstr("of another user's job\n")) << user;
  }
  for (const auto& entitled : {tcp(pki::Role::User, "olga"), channel_}) {
    const std::string texts = texts_for(entitled);
    EXPECT_THAT(texts, HasSubstr(kSecret));
    EXPECT_THAT(texts, Not(HasSubstr("of another user's job")));
  }
}

TEST_F(OthersJobs, TheOwnerIsTheCertificatesOrTheControllersUser) {
  EXPECT_EQ(this->job(alices()).owner(), "alice");
  EXPECT_EQ(this->job(submitted("own")).owner(), kOwnUser);
}

TEST_F(OthersJobs, AViewerMayNotSubmit) {
  const auto stub = v1::JobService::NewStub(tcp(pki::Role::User, "vera"));
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec("veras");
  v1::SubmitJobResponse response;
  const grpc::Status refused = stub->SubmitJob(context().get(), request, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(refused.error_message(), HasSubstr("the role 'user' is needed"));
}

TEST_F(OthersJobs, AListOfOnesOwnCountsTheOthers) {
  alices();
  submitted("own");
  const auto stub = v1::JobService::NewStub(tcp(pki::Role::User, "alice"));
  v1::ListJobsRequest request;
  request.set_all(true);
  request.set_mine(true);
  v1::ListJobsResponse listed;
  ASSERT_TRUE(stub->ListJobs(context().get(), request, &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 1);
  EXPECT_EQ(listed.jobs(0).owner(), "alice");
  EXPECT_EQ(listed.others(), 1U);
  ASSERT_TRUE(stub_->ListJobs(context().get(), request, &listed).ok());
  EXPECT_EQ(listed.jobs_size(), 2);  // over the socket all are one's own
  EXPECT_EQ(listed.others(), 0U);
  request.set_owner(kOwnUser);
  ASSERT_TRUE(stub->ListJobs(context().get(), request, &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 1);
  EXPECT_TRUE(listed.jobs(0).withheld());
  EXPECT_EQ(listed.jobs(0).spec().name(), "own");
}

TEST_F(OthersJobs, ARequestIdIsOneUsers) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec("one");
  request.set_request_id("retry");
  v1::SubmitJobResponse response;
  const auto submit_as = [&](const char* user) {
    const auto stub = v1::JobService::NewStub(tcp(pki::Role::User, user));
    return stub->SubmitJob(context().get(), request, &response);
  };
  ASSERT_TRUE(submit_as("alice").ok());
  ASSERT_TRUE(submit_as("alice").ok());
  EXPECT_TRUE(response.repeated_request());
  const grpc::Status refused = submit_as("bob");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("its request id was used by another user"));
}

TEST_F(OthersJobs, WhoCancelledIsKept) {
  const std::string job = submitted("own");
  const auto stub = v1::JobService::NewStub(tcp(pki::Role::User, "olga"));
  v1::CancelJobRequest cancel;
  cancel.set_job(job);
  cancel.set_reason("too long");
  v1::CancelJobResponse cancelled;
  ASSERT_TRUE(stub->CancelJob(context().get(), cancel, &cancelled).ok());
  EXPECT_EQ(this->job(job).verdict().reason(), "cancelled by olga: too long");
}

}  // namespace
}  // namespace muster::controller
