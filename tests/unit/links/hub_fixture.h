// A hub on a unix socket. gtest creates the fixture for each test. Tests run on their own thread;
// the controller has its usual threads.
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
#include <optional>
#include <string>

#include "common/rpc/channel.h"
#include "controller/core/hello.h"
#include "controller/journal/sqlite_journal.h"
#include "controller/secrets/job_secrets.h"
#include "tests/support/hand_agent.h"
#include "tests/support/test_controller.h"

namespace muster::controller {

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

class HubTest : public testing::Test {
 protected:
  HubTest() {
    // When its last server and channel are gone, gRPC shuts down as a whole. Then it waits up to 10
    // s for a poller that it keeps for blocked writes.
    static const bool kept = (grpc_init(), true);
    EXPECT_TRUE(kept);
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-hub-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    address_ = "unix:" + (dir_ / "s").string();
    vault_.emplace(std::move(*Vault::open(dir_ / "secrets", dir_ / "secrets.key")));
    secrets_ = std::make_unique<JobSecrets>(*vault_, vault_loop_);
    start();
  }
  ~HubTest() override {
    stop();
    vault_loop_.stop();
    std::filesystem::remove_all(dir_);
  }
  // Throws std::runtime_error if the shell does not start.
  void start() {
    journal_ = std::move(*journal::SqliteJournal::open({.dir = dir_ / "journal",
                                                        .accept_loss = accept_loss_,
                                                        .ballast_bytes = 0,
                                                        .low_space_bytes = 0}));
    Shell::Options options;
    options.inbox_max = inbox_max_;
    options.paused = [this] {
      return journal_->behind().empty() ? std::string() : core::pause_text(journal_->behind());
    };
    options.describe = [](const journal::Row& row, const core::Ledger&) {
      v1::Event event;
      event.set_index(row.index.value);
      return event;
    };
    options.lost = [this] { return journal_->lost(); };
    options.lineage_id = "lineage";
    const auto mark_behind = [this](const Error& error, std::uint64_t generation) {
      controller_->shell->with_journal("behind", [this, error, generation](journal::Journal&) {
        EXPECT_TRUE(journal_->mark_behind(error.message, generation));
      });
    };
    controller_ =
        std::make_unique<TestController>(TestController::Setup{.dir = dir_,
                                                               .journal = *journal_,
                                                               .clock = clock_,
                                                               .shell = std::move(options),
                                                               .on_behind = mark_behind,
                                                               .secrets = secrets_.get(),
                                                               .secrets_loop = &vault_loop_});
    grpc::ServerBuilder builder;
    rpc::tune_server(builder);
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(controller_->hub.get());
    server_ = builder.BuildAndStart();
  }
  void stop() {
    if (server_) {
      server_->Shutdown(std::chrono::system_clock::now());
      server_->Wait();
      controller_->stop();
    }
    server_.reset();
    controller_.reset();
    journal_.reset();
  }
  void restart() {
    stop();
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
  void submit(v1::JobSpec spec, v1::ResolvedSpec resolved = {}) {
    const JobId job(spec.name());
    EXPECT_EQ(decided(core::SubmitJob{.job = job,
                                      .request_id = {},
                                      .spec = std::move(spec),
                                      .resolved = std::move(resolved),
                                      .spec_hash = "h"}),
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
  async::Loop vault_loop_{"vault"};
  std::optional<Vault> vault_;
  std::unique_ptr<JobSecrets> secrets_;
  std::unique_ptr<journal::SqliteJournal> journal_;
  std::unique_ptr<TestController> controller_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster::controller
