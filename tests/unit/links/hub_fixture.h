// A hub on a unix socket, and an agent's half of the stream, driven by hand. gtest creates the
// fixture for each test. Tests run on their own thread; the controller has its usual threads.
//
// The shell is real, the journal is on disk, and the clock can be set ahead. The controller can be
// restarted over the same journal.
#pragma once

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <string>

#include "common/rpc/channel.h"
#include "controller/journal/sqlite_journal.h"
#include "controller/links/hub.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::controller {

inline constexpr std::chrono::seconds kPatience(60);

class SetAheadClock final : public Clock {
 public:
  [[nodiscard]] Now now() const override {
    Now now = system_clock().now();
    now.boot += Duration(ahead_.load());
    now.wall += Duration(ahead_.load());
    return now;
  }
  void advance(Duration by) { ahead_ += by.count(); }

 private:
  std::atomic<std::int64_t> ahead_ = 0;
};

class NoLogs final : public Hub::PushLogsReactor {
 public:
  NoLogs() { Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not in this test")); }
  void OnDone() override { delete this; }
};

// One agent's stream; its calls block.
class HandAgent {
 public:
  explicit HandAgent(const std::string& address)
      : stub_(v1::AgentService::NewStub(rpc::make_channel({.address = address}))) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_->Connect(&context_);
  }
  ~HandAgent() {
    context_.TryCancel();
    if (!finished_) stream_->Finish();
  }
  static v1::Hello hello(std::uint32_t devices, const std::string& node = "n1") {
    v1::Hello hello;
    hello.set_protocol_min(1);
    hello.set_protocol_max(1);
    hello.set_node(node);
    hello.set_instance("i1");
    hello.set_boot_id("boot-1");
    hello.mutable_inventory()->set_address("127.0.0.1");
    for (std::uint32_t id = 0; id < devices; ++id) {
      v1::Device& device = *hello.mutable_inventory()->add_devices();
      device.set_id(id);
      device.set_type("cpu");
    }
    return hello;
  }
  // Returns true if it is welcomed.
  bool connect(const v1::Hello& hello) {
    v1::ConnectRequest request;
    *request.mutable_hello() = hello;
    v1::ConnectResponse response;
    return stream_->Write(request) && stream_->Read(&response) && response.has_welcome();
  }
  void say(v1::Fact fact) {
    v1::ConnectRequest request;
    request.mutable_facts()->set_sequence(++sequence_);
    *request.mutable_facts()->add_facts() = std::move(fact);
    stream_->Write(request);
  }
  void heartbeat(v1::Heartbeat heartbeat) {
    v1::ConnectRequest request;
    *request.mutable_heartbeat() = std::move(heartbeat);
    stream_->Write(request);
  }
  // The next message that has orders; acknowledgements are skipped. Nothing: the stream ended.
  std::optional<v1::Orders> orders() {
    v1::ConnectResponse response;
    while (stream_->Read(&response)) {
      if (response.has_orders()) return response.orders();
    }
    return std::nullopt;
  }
  // The next order for this attempt.
  std::optional<v1::Order> order(const std::string& job, v1::Order::WantCase want) {
    while (auto message = orders()) {
      for (const v1::Order& order : message->orders()) {
        if (order.job_id() == job && order.want_case() == want) return order;
      }
    }
    return std::nullopt;
  }
  // The next files that another node wants.
  std::optional<v1::FilesWanted> wanted() {
    v1::ConnectResponse response;
    while (stream_->Read(&response)) {
      if (response.has_files_wanted()) return response.files_wanted();
    }
    return std::nullopt;
  }
  // Reads until the acknowledgement; orders are skipped.
  bool heartbeat_acknowledged() {
    v1::Heartbeat one;
    one.set_number(++heartbeats_);
    heartbeat(one);
    v1::ConnectResponse response;
    while (stream_->Read(&response)) {
      if (response.has_heartbeat_ack() && response.heartbeat_ack().number() == heartbeats_)
        return true;
    }
    return false;
  }
  bool acknowledged() {
    v1::ConnectResponse response;
    while (stream_->Read(&response)) {
      if (response.has_fact_ack() && response.fact_ack().sequence() == sequence_) return true;
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
  std::uint64_t sequence_ = 0, heartbeats_ = 0;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ConnectRequest, v1::ConnectResponse>> stream_;
};

class HubTest : public testing::Test {
 protected:
  // A controller's incarnation over the fixture's directory.
  struct Controller {
    Controller(const std::filesystem::path& dir, const Clock& clock, const std::string& address,
               std::size_t inbox_max, bool accept_loss) {
      journal = std::move(*journal::SqliteJournal::open({.dir = dir / "journal",
                                                         .accept_loss = accept_loss,
                                                         .ballast_bytes = 0,
                                                         .low_space_bytes = 0}));
      store = std::move(*logs::LogStore::open(dir / "logs", 1 << 30));
      Shell::Options options;
      options.version = "test";
      options.new_cluster = ClusterId("cluster");
      options.inbox_max = inbox_max;
      options.paused = [this] {
        return journal->behind().empty() ? std::string() : pause_text(journal->behind());
      };
      options.describe = [](const journal::Row& row, const core::Ledger&) {
        v1::Event event;
        event.set_index(row.index.value);
        return event;
      };
      options.on_fatal = [](const Error& error) { ADD_FAILURE() << error.message; };
      shell = std::make_unique<Shell>(*journal, clock, std::move(options));
      const auto started = shell->start();
      if (!started) {
        work.stop();
        throw std::runtime_error(started.error().message);
      }
      collected = std::make_unique<LogsCollected>(*shell, *store, work);
      hub = std::make_unique<Hub>(
          *shell, *store, work, *collected, clock,
          Hub::Options{.version = "test",
                       .cluster_out = "/out",
                       .on_behind =
                           [this](const Error& error) {
                             shell->with_journal("behind", [this, error](journal::Journal&) {
                               EXPECT_TRUE(journal->mark_behind(error.message));
                             });
                           }},
          [](grpc::CallbackServerContext*) { return new NoLogs; });
      collected->start(shell->started_ledger());
      hub->set_start(*started);
      shell->set_listener(hub.get());
      shell->open();
      grpc::ServerBuilder builder;
      rpc::tune_server(builder);
      builder.AddListeningPort(address, grpc::InsecureServerCredentials());
      builder.RegisterService(hub.get());
      server = builder.BuildAndStart();
    }
    ~Controller() {
      server->Shutdown(std::chrono::system_clock::now());
      server->Wait();
      shell->stop();
      work.stop();
    }
    std::unique_ptr<journal::SqliteJournal> journal;
    async::Loop work{"work"};
    std::unique_ptr<logs::LogStore> store;
    std::unique_ptr<Shell> shell;
    std::unique_ptr<LogsCollected> collected;
    std::unique_ptr<Hub> hub;
    std::unique_ptr<grpc::Server> server;
  };

  HubTest() {
    // When its last server and channel are gone, gRPC shuts down as a whole. Then it waits up to 10
    // s for a poller that it keeps for blocked writes.
    static const bool kept = (grpc_init(), true);
    EXPECT_TRUE(kept);
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-hub-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    address_ = "unix:" + (dir_ / "s").string();
    start();
  }
  ~HubTest() override {
    controller_.reset();
    std::filesystem::remove_all(dir_);
  }
  void start() {
    controller_ = std::make_unique<Controller>(dir_, clock_, address_, inbox_max_, accept_loss_);
  }
  void restart() {
    controller_.reset();
    start();
  }

  static v1::JobSpec command(const std::string& name, std::uint32_t devices) {
    v1::JobSpec spec;
    spec.set_name(name);
    spec.set_engine("command");
    spec.mutable_code()->set_at("/srv");
    spec.mutable_runtime()->set_user("submitter");
    spec.mutable_launch()->set_per(v1::LAUNCH_PER_RANK);
    spec.mutable_launch()->add_run("true");
    spec.mutable_resources()->set_nodes(1);
    spec.mutable_resources()->set_devices(devices);
    spec.mutable_resources()->set_type("auto");
    spec.mutable_recovery()->set_max_restarts(20);
    spec.mutable_recovery()->mutable_window()->set_seconds(86'400);
    spec.mutable_recovery()->mutable_orphan_grace()->set_seconds(1'800);
    return spec;
  }
  // Submits without the clients' services; the job's id is its name. Returns when it is durable;
  // then it is placed as well, if there is room.
  void submit(v1::JobSpec spec) {
    const JobId job(spec.name());
    EXPECT_EQ(decided(core::SubmitJob{
                  .job = job, .request_id = {}, .spec = std::move(spec), .spec_hash = "h"}),
              "");
  }
  // Returns why the input was refused; empty: it was not.
  std::string decided(core::Input input) {
    std::promise<std::string> refusal;
    const bool taken = controller_->shell->submit(
        std::move(input), clock_.now(), [&](const Outcome& outcome, const View&) {
          refusal.set_value(outcome.refusal ? outcome.refusal->message : "");
        });
    if (!taken) return "overloaded";
    return refusal.get_future().get();
  }
  // Returns what `query` makes of a moment at which all is durable.
  template <class Query>
  auto seen(Query query) {
    std::promise<decltype(query(std::declval<const View&>()))> made;
    EXPECT_TRUE(controller_->shell->read([&](const View& view) { made.set_value(query(view)); }));
    return made.get_future().get();
  }

  std::filesystem::path dir_;
  std::string address_;
  std::size_t inbox_max_ = 100'000;  // of clients; this field and the next are for the next start
  bool accept_loss_ = false;
  SetAheadClock clock_;
  std::unique_ptr<Controller> controller_;
};

}  // namespace muster::controller
