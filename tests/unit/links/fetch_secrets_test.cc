// Secrets of a job: which node gets them, when, and which values.
#include "tests/unit/links/hub_fixture.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;

class FetchSecrets : public HubTest {
 protected:
  void set(const std::string& name, const std::string& value) {
    EXPECT_EQ(decided(core::SetSecret{.key = {.owner = {}, .shared = false, .name = name},
                                      .item = *vault_->put(value),
                                      .actor = "ann"}),
              "");
  }
  void submit_with(const std::string& secret) {
    v1::JobSpec spec = command("job", 1);
    (*spec.mutable_runtime()->mutable_env())["HF_TOKEN"] = "${secret:" + secret + "}";
    submit(std::move(spec));
  }
  static v1::Hello hello(const std::string& node, std::uint32_t devices = 1) {
    v1::Hello hello = HandAgent::hello(devices, node);
    hello.set_instance("i-" + node);
    hello.mutable_inventory()->set_knows_secrets(true);
    return hello;
  }
  static v1::FetchSecretsRequest request(const std::string& node) {
    v1::FetchSecretsRequest request;
    request.set_cluster_id("cluster");
    request.set_node(node);
    request.set_instance("i-" + node);
    request.set_job_id("job");
    request.set_attempt(1);
    return request;
  }
  grpc::Status asked(const v1::FetchSecretsRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    given_.Clear();
    return stub_->FetchSecrets(&context, request, &given_);
  }

  v1::FetchSecretsResponse given_;
  std::unique_ptr<v1::AgentService::Stub> stub_ =
      v1::AgentService::NewStub(rpc::make_channel({.address = address_}));
};

TEST_F(FetchSecrets, TheNodeThatIsToStartGetsWhatWasSetWhenTheAttemptWasPlaced) {
  HandAgent n1(address_);
  ASSERT_TRUE(n1.connect(hello("n1")));
  set("hf", "first");
  submit_with("hf");
  const auto order = n1.order("job", v1::Order::kRun);
  ASSERT_TRUE(order);
  ASSERT_EQ(order->run().secrets_size(), 1);
  EXPECT_EQ(order->run().secrets(0).variable(), "HF_TOKEN");
  EXPECT_EQ(order->run().secrets(0).secret(), "hf");
  EXPECT_THAT(order->run().DebugString(), testing::Not(HasSubstr("first")));
  set("hf", "second");
  ASSERT_TRUE(asked(request("n1")).ok());
  ASSERT_EQ(given_.secrets_size(), 1);
  EXPECT_EQ(given_.secrets(0).secret(), "hf");
  EXPECT_EQ(given_.secrets(0).value(), "first");
  ASSERT_TRUE(asked(request("n1")).ok()) << "an agent that was killed asks again";
}

TEST_F(FetchSecrets, NobodyElseGetsThem) {
  HandAgent n1(address_), n2(address_);
  ASSERT_TRUE(n1.connect(hello("n1")));
  ASSERT_TRUE(n2.connect(hello("n2", 0)));
  set("hf", "value");
  submit_with("hf");
  ASSERT_TRUE(n1.order("job", v1::Order::kRun));
  std::vector<v1::FetchSecretsRequest> wrong(5, request("n1"));
  wrong[0] = request("n2");
  wrong[1].set_instance("another");
  wrong[2].set_cluster_id("another");
  wrong[3].set_attempt(2);
  wrong[4].set_job_id("another");
  for (const v1::FetchSecretsRequest& one : wrong) {
    const grpc::Status refused = asked(one);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << one.DebugString();
    EXPECT_THAT(refused.error_message(), HasSubstr("is not to start job"));
    EXPECT_EQ(given_.secrets_size(), 0);
  }
}

TEST_F(FetchSecrets, AfterTheStartNobodyGetsThem) {
  HandAgent n1(address_);
  ASSERT_TRUE(n1.connect(hello("n1")));
  set("hf", "value");
  submit_with("hf");
  ASSERT_TRUE(n1.order("job", v1::Order::kRun));
  v1::Fact fact;
  fact.set_job_id("job");
  fact.set_attempt(1);
  fact.mutable_started()->add_pids(42);
  n1.say(fact);
  ASSERT_TRUE(n1.acknowledged());
  EXPECT_EQ(asked(request("n1")).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace muster::controller
