// Secrets of a job: which node gets them, when, and which values.
#include <fmt/format.h>

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

// The key of an input's store is asked for like a secret, and is the value of no variable.
TEST_F(FetchSecrets, AStoresKeyIsGivenForTheInputsOfTheOrder) {
  set("store.pangu", "s3cr3t");
  v1::StoreProfile profile;
  profile.set_url("obs://");
  profile.set_endpoint("https://obs.example.org");
  profile.set_user("AKID");
  profile.set_secret("store.pangu");
  EXPECT_EQ(decided(core::SetStore{.key = {.owner = {}, .shared = false, .name = "pangu"},
                                   .profile = profile,
                                   .actor = "ann"}),
            "");
  HandAgent n1(address_);
  v1::Hello first = hello("n1");
  first.mutable_inventory()->set_rclone("1.60.1");
  ASSERT_TRUE(n1.connect(first));
  v1::JobSpec spec = command("job", 1);
  spec.add_inputs()->set_name("data");
  spec.mutable_inputs(0)->set_from("obs://bucket/wiki");
  v1::ResolvedSpec resolved;
  (*resolved.mutable_inputs())["data"] = "/srv/inputs/jobs/job/data/wiki";
  submit(std::move(spec), std::move(resolved));
  const auto order = n1.order("job", v1::Order::kRun);
  ASSERT_TRUE(order);
  ASSERT_EQ(order->run().staged_size(), 1);
  const v1::StagedInput& staged = order->run().staged(0);
  EXPECT_EQ(staged.url(), "obs://bucket/wiki");
  EXPECT_EQ(staged.root(), "/srv/inputs");
  EXPECT_EQ(staged.path(), "/srv/inputs/jobs/job/data/wiki");
  EXPECT_EQ(staged.profile().user(), "AKID");
  EXPECT_EQ(order->run().secrets_size(), 0);
  EXPECT_THAT(order->run().DebugString(), testing::Not(HasSubstr("s3cr3t")));
  const grpc::Status status = asked(request("n1"));
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(given_.secrets_size(), 1);
  EXPECT_EQ(given_.secrets(0).secret(), staged.secret());
  EXPECT_EQ(given_.secrets(0).value(), "s3cr3t");
}

// After the start the node uploads outputs: for that it gets the store's key, and no other secret.
TEST_F(FetchSecrets, WhoUploadsGetsTheStoresKeyAlone) {
  set("hf", "value");
  set("store.out", "s3cr3t");
  v1::StoreProfile profile;
  profile.set_url("obs://");
  profile.set_endpoint("https://obs.example.org");
  profile.set_user("AKID");
  profile.set_secret("store.out");
  EXPECT_EQ(decided(core::SetStore{.key = {.owner = {}, .shared = false, .name = "out"},
                                   .profile = profile,
                                   .actor = "ann"}),
            "");
  HandAgent n1(address_);
  v1::Hello first = hello("n1");
  first.mutable_inventory()->set_rclone("1.60.1");
  first.mutable_inventory()->set_uploads(true);
  ASSERT_TRUE(n1.connect(first));
  v1::JobSpec spec = command("job", 1);
  (*spec.mutable_runtime()->mutable_env())["HF_TOKEN"] = "${secret:hf}";
  spec.mutable_outputs()->set_to("obs://bucket/runs");
  spec.mutable_outputs()->add_include("*.pt");
  spec.mutable_outputs()->mutable_every()->set_seconds(600);
  spec.mutable_outputs()->set_rate_limit(1000);
  submit(std::move(spec));
  const auto order = n1.order("job", v1::Order::kRun);
  ASSERT_TRUE(order);
  const v1::OutputUpload& upload = order->run().upload();
  EXPECT_EQ(upload.url(), "obs://bucket/runs");
  EXPECT_EQ(upload.profile().user(), "AKID");
  EXPECT_EQ(upload.include(0), "*.pt");
  EXPECT_EQ(upload.every().seconds(), 600);
  EXPECT_EQ(upload.rate_limit(), 1000U);
  EXPECT_TRUE(upload.seals());
  EXPECT_TRUE(upload.dir().starts_with("/")) << upload.dir();
  EXPECT_THAT(order->run().DebugString(), testing::Not(HasSubstr("s3cr3t")));
  ASSERT_TRUE(asked(request("n1")).ok());
  EXPECT_EQ(given_.secrets_size(), 2);
  v1::Fact fact;
  fact.set_job_id("job");
  fact.set_attempt(1);
  fact.mutable_started()->add_pids(42);
  n1.say(fact);
  ASSERT_TRUE(n1.acknowledged());
  ASSERT_TRUE(asked(request("n1")).ok());
  ASSERT_EQ(given_.secrets_size(), 1);
  EXPECT_EQ(given_.secrets(0).secret(), upload.secret());
  EXPECT_EQ(given_.secrets(0).value(), "s3cr3t");
  set("store.out", "renewed");
  ASSERT_TRUE(asked(request("n1")).ok());
  ASSERT_EQ(given_.secrets_size(), 1);
  EXPECT_EQ(given_.secrets(0).value(), "renewed") << "a training may outlive a key";
  EXPECT_EQ(decided(core::RemoveStore{.key = {.owner = {}, .shared = false, .name = "out"},
                                      .actor = "ann"}),
            "");
  ASSERT_TRUE(asked(request("n1")).ok());
  EXPECT_EQ(given_.secrets_size(), 1) << "the store is gone, and its key as it was is there";
  v1::FetchSecretsRequest other = request("n1");
  other.set_instance("another");
  EXPECT_EQ(asked(other).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

// The same for logs, which may go to another store.
TEST_F(FetchSecrets, WhoUploadsLogsGetsTheirStoresKey) {
  for (const char* name : {"out", "logs"}) {
    set(std::string("store.") + name, std::string("s3cr3t-") + name);
    v1::StoreProfile profile;
    profile.set_url(std::string("obs://") + name + "bucket");
    profile.set_endpoint("https://obs.example.org");
    profile.set_user("AKID");
    profile.set_secret(std::string("store.") + name);
    EXPECT_EQ(decided(core::SetStore{.key = {.owner = {}, .shared = false, .name = name},
                                     .profile = profile,
                                     .actor = "ann"}),
              "");
  }
  HandAgent n1(address_);
  v1::Hello first = hello("n1");
  first.mutable_inventory()->set_rclone("1.60.1");
  first.mutable_inventory()->set_uploads(true);
  first.mutable_inventory()->set_uploads_logs(true);
  ASSERT_TRUE(n1.connect(first));
  v1::JobSpec spec = command("job", 1);
  spec.mutable_outputs()->set_to("obs://outbucket/runs");
  spec.mutable_outputs()->set_logs_to("obs://logsbucket/a");
  spec.mutable_outputs()->mutable_every()->set_seconds(60);
  submit(std::move(spec));
  const auto order = n1.order("job", v1::Order::kRun);
  ASSERT_TRUE(order);
  const v1::LogUpload& upload = order->run().logs_upload();
  EXPECT_EQ(upload.url(), "obs://logsbucket/a/job");
  EXPECT_EQ(upload.profile().secret(), "store.logs");
  EXPECT_EQ(upload.every().seconds(), 60);
  EXPECT_EQ(upload.node(), "n1");
  v1::Fact fact;
  fact.set_job_id("job");
  fact.set_attempt(1);
  fact.mutable_started()->add_pids(42);
  n1.say(fact);
  ASSERT_TRUE(n1.acknowledged());
  ASSERT_TRUE(asked(request("n1")).ok());
  ASSERT_EQ(given_.secrets_size(), 2);
  EXPECT_EQ(given_.secrets(0).secret(), order->run().upload().secret());
  EXPECT_EQ(given_.secrets(0).value(), "s3cr3t-out");
  EXPECT_EQ(given_.secrets(1).secret(), upload.secret());
  EXPECT_EQ(given_.secrets(1).value(), "s3cr3t-logs");
}

TEST_F(FetchSecrets, ANodeWithoutRcloneGetsNoJobWithSuchAnInput) {
  v1::StoreProfile profile;
  profile.set_url("https://host");
  EXPECT_EQ(decided(core::SetStore{.key = {.owner = {}, .shared = false, .name = "web"},
                                   .profile = profile,
                                   .actor = "ann"}),
            "");
  HandAgent n1(address_), n2(address_);
  v1::Hello old = hello("n1"), good = hello("n2");
  old.mutable_inventory()->set_rclone("1.53.3");
  good.mutable_inventory()->set_rclone("1.60.1");
  ASSERT_TRUE(n1.connect(old));
  ASSERT_TRUE(n2.connect(good));
  v1::JobSpec spec = command("job", 1);
  spec.add_inputs()->set_name("data");
  spec.mutable_inputs(0)->set_from("https://host/wiki");
  v1::ResolvedSpec resolved;
  (*resolved.mutable_inputs())["data"] = "/srv/inputs/jobs/job/data/wiki";
  submit(std::move(spec), std::move(resolved));
  EXPECT_TRUE(n2.order("job", v1::Order::kRun));
}

}  // namespace
}  // namespace muster::controller
