// An agent asks for the secrets of a start: in which order it gets them, and what it makes of a
// controller that refuses or is away.
#include "agent/link/secret_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <future>
#include <map>
#include <mutex>

#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SecretsAnswer final : public v1::AgentService::Service {
 public:
  explicit SecretsAnswer(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~SecretsAnswer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  grpc::Status FetchSecrets(grpc::ServerContext*, const v1::FetchSecretsRequest* request,
                            v1::FetchSecretsResponse* response) override {
    const std::lock_guard lock(mutex_);
    asked_ = *request;
    *response = answer_;
    return status_;
  }
  void set(const grpc::Status& status, const std::map<std::string, std::string>& values = {}) {
    const std::lock_guard lock(mutex_);
    status_ = status;
    answer_.Clear();
    for (const auto& [name, value] : values) {
      v1::SecretValue& one = *answer_.add_secrets();
      one.set_secret(name);
      one.set_value(value);
    }
  }
  v1::FetchSecretsRequest asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  grpc::Status status_;
  v1::FetchSecretsResponse answer_;
  v1::FetchSecretsRequest asked_;
  std::unique_ptr<grpc::Server> server_;
};

class SecretFetchTest : public testing::Test {
 protected:
  SecretFetchTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "muster-secrets-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    address_ = "unix:" + (dir_ / "s").string();
    order_.set_job_id("01j8x4a0b7c2d");
    order_.set_job_name("train");
    order_.set_attempt(2);
  }
  ~SecretFetchTest() override { std::filesystem::remove_all(dir_); }
  SecretFetch::Options options() {
    return {.endpoint = [this]() -> Result<rpc::Endpoint> {
              return rpc::Endpoint{.address = address_};
            },
            .self =
                [] {
                  v1::LogHello self;
                  self.set_cluster_id("c-1");
                  self.set_node("n1");
                  self.set_instance("i-1");
                  return std::optional(self);
                }};
  }

  std::filesystem::path dir_;
  std::string address_;
  v1::NodeLaunch order_;
};

TEST_F(SecretFetchTest, ValuesComeByTheirNames) {
  SecretsAnswer controller(address_);
  controller.set(grpc::Status::OK, {{"wandb", "two"}, {"hf", "one"}});
  SecretFetch fetch(options());
  const auto values = fetch.fetch(order_);
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_THAT(*values, ElementsAre(std::pair("hf", "one"), std::pair("wandb", "two")));
  EXPECT_EQ(controller.asked().node(), "n1");
  EXPECT_EQ(controller.asked().instance(), "i-1");
  EXPECT_EQ(controller.asked().cluster_id(), "c-1");
  EXPECT_EQ(controller.asked().job_id(), "01j8x4a0b7c2d");
  EXPECT_EQ(controller.asked().attempt(), 2U);
}

TEST_F(SecretFetchTest, OnlyWhatIsTheJobsFaultIsOne) {
  SecretsAnswer controller(address_);
  SecretFetch fetch(options());
  controller.set({grpc::StatusCode::INVALID_ARGUMENT, "more than 1 MiB"});
  EXPECT_EQ(fetch.fetch(order_).error().code, ErrorCode::InvalidArgument);
  controller.set({grpc::StatusCode::FAILED_PRECONDITION, "not to start"});
  const auto refused = fetch.fetch(order_);
  EXPECT_EQ(refused.error().code, ErrorCode::Unreachable);
  EXPECT_THAT(refused.error().message, HasSubstr("not to start"));
}

TEST_F(SecretFetchTest, AStopEndsTheWaitForAControllerThatIsAway) {
  SecretFetch fetch(options());
  auto asking = std::async(std::launch::async, [&] { return fetch.fetch(order_); });
  fetch.stop();
  const auto ended = asking.get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::Unreachable);
}

TEST_F(SecretFetchTest, AnAgentThatHasNotJoinedSaysSo) {
  SecretFetch::Options alone = options();
  alone.self = [] { return std::optional<v1::LogHello>(); };
  SecretFetch fetch(std::move(alone));
  EXPECT_THAT(fetch.fetch(order_).error().message, HasSubstr("has not joined a cluster"));
}

}  // namespace
}  // namespace muster::agent
