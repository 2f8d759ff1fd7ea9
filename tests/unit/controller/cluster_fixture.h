// A controller in this process, with its services and server. gtest creates the fixture for each
// test. Tests run on their own thread; the controller has its usual threads.
//
// The shell, the services and the log store are real. The server listens on a unix socket and on
// loopback TCP. The journal is in memory.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/base/version.h"
#include "common/pki/authority_dir.h"
#include "common/pki/authority_files.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_port.h"
#include "controller/access/access.h"
#include "controller/api/authority_changes.h"
#include "controller/api/authority_list.h"
#include "controller/api/certificate_service.h"
#include "controller/api/event_text.h"
#include "controller/api/job_service.h"
#include "controller/api/node_service.h"
#include "controller/journal/memory_journal.h"
#include "controller/server.h"
#include "tests/support/credentials.h"
#include "tests/support/hand_agent.h"
#include "tests/support/test_controller.h"

namespace muster::controller {

class ClusterTest : public testing::Test {
 protected:
  explicit ClusterTest(std::size_t watch_queue_max = WatchStream::kQueueMax) {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-ctl-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    Shell::Options options;
    options.describe = describe;
    options.limits.silent_after = std::chrono::minutes(1);
    controller_ = std::make_unique<TestController>(
        TestController::Setup{.dir = dir_,
                              .journal = journal_,
                              .clock = system_clock(),
                              .shell = std::move(options),
                              .on_behind = [this](const Error&, std::uint64_t) { behind_ = true; },
                              .revocations = &revocations_});
    edge_ = std::make_unique<Edge>(
        Edge{.shell = *controller_->shell,
             .logs = *controller_->store,
             .work = controller_->work,
             .access = access_,
             .cluster_out = "/out",
             .version = "test",
             .shortage =
                 [this] {
                   return std::string(low_on_space_ ? "the controller's disk is nearly full" : "");
                 },
             .revocations = &revocations_});
    jobs_ = std::make_unique<JobService>(*edge_, 1, watch_queue_max);
    nodes_ = std::make_unique<NodeService>(*edge_, kProtocolMin, kProtocolMax);
    const WallTime now = system_clock().now().wall;
    auto set = pki::settle_authorities(dir_ / "pki", kCluster, {}, now);
    if (!set) throw std::runtime_error(set.error().message);
    authorities_ = std::make_unique<Authorities>(authorities_now(std::move(*set), now));
    authority_ = pki::open_authority(dir_ / "pki", kCluster, now);
    tls_ = std::make_shared<rpc::LiveTls>(authorities_->now()->own.front());
    changes_ = std::make_unique<AuthorityChanges>(
        *controller_->shell, *authorities_, controller_->work, system_clock(), dir_ / "pki",
        [this](const AuthoritiesNow& changed) {
          tls_->replace(changed.own.front());
          revocations_.trust(changed.trusted);
          controller_->hub->set_authorities(trusted_by_agents(changed));
        });
    certificates_ = std::make_unique<CertificateService>(
        *controller_->shell, *authorities_, system_clock(), *changes_, revocations_, kOwnUser);
    auto server = Server::start(
        {"unix:" + (dir_ / "s").string(), "127.0.0.1:0"},
        {controller_->hub.get(), jobs_.get(), nodes_.get(), certificates_.get()},
        rpc::tls_credentials(
            tls_, system_clock(),
            {.may_call = [this](
                             const pki::Identity& caller,
                             std::string_view method) { return access_.may_call(caller, method); },
             .not_revoked =
                 [this](const pki::Identity& caller, const pki::Certificate& certificate) {
                   return revocations_.check(caller, certificate);
                 },
             .on_refused = {}}));
    if (!server) throw std::runtime_error(server.error().message);
    server_ = std::move(*server);
    channel_ = rpc::make_channel({.address = server_->bound()[0]});
    stub_ = v1::JobService::NewStub(channel_);
    node_stub_ = v1::NodeService::NewStub(channel_);
  }
  ~ClusterTest() override {
    server_->shut_down();
    jobs_->stop();
    controller_->stop();
    std::filesystem::remove_all(dir_);
  }

  static std::unique_ptr<grpc::ClientContext> context() {
    auto made = std::make_unique<grpc::ClientContext>();
    made->set_deadline(std::chrono::system_clock::now() + kPatience);
    return made;
  }
  static v1::JobSpec spec(const std::string& name) {
    v1::JobSpec spec;
    spec.set_name(name);
    spec.set_engine("command");
    spec.mutable_code()->set_at("/tmp");
    spec.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
    spec.mutable_launch()->add_run("true");
    spec.mutable_resources()->set_nodes(1);
    spec.mutable_resources()->set_devices(1);
    return spec;
  }
  grpc::Status submit(const std::string& name, v1::SubmitJobResponse& response,
                      const std::string& request_id = {}) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec(name);
    request.set_request_id(request_id);
    return stub_->SubmitJob(context().get(), request, &response);
  }
  std::string submitted(const std::string& name) {
    v1::SubmitJobResponse response;
    const grpc::Status status = submit(name, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job_id();
  }
  v1::Job job(const std::string& ref) {
    v1::GetJobRequest request;
    request.set_job(ref);
    v1::GetJobResponse response;
    const grpc::Status status = stub_->GetJob(context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job();
  }

  // Calls over TCP, with a certificate of this cluster or of another authority.
  std::shared_ptr<grpc::Channel> tcp(pki::Role role, const std::string& name,
                                     const pki::Authority* authority = nullptr) {
    auto made = test::credentials(authority == nullptr ? *authority_ : *authority,
                                  {.cluster = kCluster, .role = role, .name = name});
    return rpc::make_channel(
        {.address = server_->bound()[1],
         .credentials = std::make_shared<const pki::Credentials>(std::move(made))});
  }

  static constexpr const char* kCluster = "cluster";
  static constexpr const char* kOwnUser = "owner";
  std::filesystem::path dir_;
  std::shared_ptr<journal::MemoryDisk> disk_ = std::make_shared<journal::MemoryDisk>();
  journal::MemoryJournal journal_{disk_};
  Access access_{
      kOwnUser, {.users = {{"olga", UserRole::Operator}, {"vera", UserRole::Viewer}}}, nullptr};
  Revocations revocations_;
  std::unique_ptr<TestController> controller_;
  std::unique_ptr<Edge> edge_;
  std::unique_ptr<JobService> jobs_;
  std::unique_ptr<NodeService> nodes_;
  std::unique_ptr<Authorities> authorities_;
  // The CA of the start. It signs no more when a test has changed it.
  Result<pki::Authority> authority_ = fail(ErrorCode::NotFound, "not opened yet");
  std::shared_ptr<rpc::LiveTls> tls_;
  std::unique_ptr<AuthorityChanges> changes_;
  std::unique_ptr<CertificateService> certificates_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> stub_;
  std::unique_ptr<v1::NodeService::Stub> node_stub_;
  std::atomic<bool> low_on_space_ = false, behind_ = false;
};

}  // namespace muster::controller
