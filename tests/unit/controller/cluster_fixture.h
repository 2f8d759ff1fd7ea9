// A controller in this process, and an agent's half of the stream, driven by hand. gtest creates
// the fixture for each test. Tests run on their own thread; the controller has its usual threads.
//
// The shell, the services and the log store are real. The server listens on a unix socket and on
// loopback TCP. The journal is in memory.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/rpc/channel.h"
#include "controller/api/event_text.h"
#include "controller/api/job_service.h"
#include "controller/api/node_service.h"
#include "controller/journal/memory_journal.h"
#include "controller/links/hub.h"
#include "controller/server.h"

namespace muster::controller {

inline constexpr std::chrono::seconds kPatience(60);

class NoLogs final : public Hub::PushLogsReactor {
 public:
  NoLogs() { Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not in this test")); }
  void OnDone() override { delete this; }
};

class ClusterTest : public testing::Test {
 protected:
  explicit ClusterTest(std::size_t watch_queue_max = WatchStream::kQueueMax) {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-ctl-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    store_ = std::move(*logs::LogStore::open(dir_ / "logs", 1 << 30));
    Shell::Options options;
    options.version = "test";
    options.new_cluster = ClusterId("cluster");
    options.describe = describe;
    options.on_fatal = [](const Error& error) { ADD_FAILURE() << error.message; };
    options.limits.silent_after = std::chrono::minutes(1);
    shell_ = std::make_unique<Shell>(journal_, system_clock(), std::move(options));
    const auto started = shell_->start();
    EXPECT_TRUE(started);
    collected_ = std::make_unique<LogsCollected>(*shell_, *store_, work_);
    hub_ =
        std::make_unique<Hub>(*shell_, *store_, work_, *collected_, system_clock(),
                              Hub::Options{.version = "test",
                                           .cluster_out = "/out",
                                           .on_behind = [this](const Error&) { behind_ = true; }},
                              [](grpc::CallbackServerContext*) { return new NoLogs; });
    edge_ = std::make_unique<Edge>(
        Edge{.shell = *shell_,
             .logs = *store_,
             .work = work_,
             .cluster_out = "/out",
             .version = "test",
             .shortage = [this] {
               return std::string(low_on_space_ ? "the controller's disk is nearly full" : "");
             }});
    jobs_ = std::make_unique<JobService>(*edge_, 1, watch_queue_max);
    nodes_ = std::make_unique<NodeService>(*edge_, kProtocolMin, kProtocolMax);
    collected_->start(shell_->started_ledger());
    hub_->set_start(*started);
    shell_->set_listener(hub_.get());
    shell_->open();
    auto server = Server::start({"unix:" + (dir_ / "s").string(), "127.0.0.1:0"},
                                {hub_.get(), jobs_.get(), nodes_.get()}, "secret");
    if (!server) throw std::runtime_error(server.error().message);
    server_ = std::move(*server);
    channel_ = rpc::make_channel({.address = server_->bound()[0]});
    stub_ = v1::JobService::NewStub(channel_);
    node_stub_ = v1::NodeService::NewStub(channel_);
  }
  ~ClusterTest() override {
    server_->shut_down();
    jobs_->stop();
    shell_->stop();
    work_.stop();
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

  std::filesystem::path dir_;
  std::shared_ptr<journal::MemoryDisk> disk_ = std::make_shared<journal::MemoryDisk>();
  journal::MemoryJournal journal_{disk_};
  async::Loop work_{"work"};
  std::unique_ptr<logs::LogStore> store_;
  std::unique_ptr<Shell> shell_;
  std::unique_ptr<LogsCollected> collected_;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<Edge> edge_;
  std::unique_ptr<JobService> jobs_;
  std::unique_ptr<NodeService> nodes_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> stub_;
  std::unique_ptr<v1::NodeService::Stub> node_stub_;
  std::atomic<bool> low_on_space_ = false, behind_ = false;
};

// One agent's stream; its calls block.
class HandAgent {
 public:
  explicit HandAgent(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::AgentService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_->Connect(&context_);
  }
  ~HandAgent() {
    context_.TryCancel();
    if (!finished_) stream_->Finish();
  }
  static v1::Hello hello(const std::string& node, const std::string& instance) {
    v1::Hello hello;
    hello.set_protocol_min(1);
    hello.set_protocol_max(1);
    hello.set_node(node);
    hello.set_instance(instance);
    hello.set_boot_id("boot-1");
    hello.mutable_inventory()->set_address("127.0.0.1");
    for (std::uint32_t id = 0; id < 2; ++id) {
      v1::Device& device = *hello.mutable_inventory()->add_devices();
      device.set_id(id);
      device.set_type("cpu");
    }
    return hello;
  }
  void say(const v1::Hello& hello) {
    v1::ConnectRequest request;
    *request.mutable_hello() = hello;
    stream_->Write(request);
  }
  void say(const v1::Facts& facts) {
    v1::ConnectRequest request;
    *request.mutable_facts() = facts;
    stream_->Write(request);
  }
  void say(const v1::Heartbeat& heartbeat) {
    v1::ConnectRequest request;
    *request.mutable_heartbeat() = heartbeat;
    stream_->Write(request);
  }
  // Reads until `wanted` is true. Returns false if the stream ended (status() has the reason).
  template <class Wanted>
  bool until(Wanted wanted, v1::ConnectResponse& response) {
    while (stream_->Read(&response)) {
      if (wanted(response)) return true;
    }
    return false;
  }
  grpc::Status status() {
    v1::ConnectResponse response;
    while (stream_->Read(&response)) {
    }
    finished_ = true;
    return stream_->Finish();
  }

 private:
  bool finished_ = false;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ConnectRequest, v1::ConnectResponse>> stream_;
};

}  // namespace muster::controller
