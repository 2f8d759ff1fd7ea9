// The parts of a controller that tests run in their own process: shell, log store and hub, over a
// journal of the test's. A fixture owns it and adds a server and services. It has the controller's
// usual threads.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "controller/journal/journal.h"
#include "controller/links/hub.h"

namespace muster::controller {

class NoLogs final : public Hub::PushLogsReactor {
 public:
  NoLogs() { Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not in this test")); }
  void OnDone() override { delete this; }
};

struct TestController {
  struct Setup {
    std::filesystem::path dir;  // `logs` is below it
    journal::Journal& journal;
    const Clock& clock;
    Shell::Options shell;  // version, cluster and on_fatal are set here
    std::function<void(const Error&, std::uint64_t generation)> on_behind;
    Revocations* revocations = nullptr;
    JobSecrets* secrets = nullptr;
    async::Loop* secrets_loop = nullptr;  // set with `secrets`
  };
  explicit TestController(Setup setup)
      : store(std::move(*logs::LogStore::open(setup.dir / "logs", 1 << 30))) {
    setup.shell.version = "test";
    setup.shell.new_cluster = ClusterId("cluster");
    setup.shell.on_fatal = [](const Error& error) { ADD_FAILURE() << error.message; };
    shell = std::make_unique<Shell>(setup.journal, setup.clock, std::move(setup.shell));
    const auto started = shell->start();
    if (!started) {
      work.stop();
      throw std::runtime_error(started.error().message);
    }
    collected = std::make_unique<LogsCollected>(*shell, *store, work);
    hub = std::make_unique<Hub>(*shell, *store, work, *collected, setup.clock,
                                Hub::Options{.version = "test",
                                             .cluster_out = "/out",
                                             .on_behind = std::move(setup.on_behind),
                                             .on_refused =
                                                 [this](const Error& error) {
                                                   const MutexLock lock(refused_mutex);
                                                   refused.push_back(error.message);
                                                 },
                                             .revocations = setup.revocations,
                                             .secrets = setup.secrets,
                                             .secrets_loop = setup.secrets_loop},
                                [](grpc::CallbackServerContext*) { return new NoLogs; });
    hub->set_start(*started);
    shell->set_listener(hub.get());
    shell->strand().assert_idle();
    collected->start(shell->started_ledger());
    shell->open();
  }
  ~TestController() { stop(); }
  // The owner has shut its server down before.
  void stop() {
    if (std::exchange(stopped, true)) return;
    shell->stop();
    work.stop();
  }
  TestController(const TestController&) = delete;
  TestController& operator=(const TestController&) = delete;

  // What the hub has written down of nodes. A copy.
  std::vector<std::string> refusals() {
    const MutexLock lock(refused_mutex);
    return refused;
  }

  bool stopped = false;
  Mutex refused_mutex;
  std::vector<std::string> refused MUSTER_GUARDED_BY(refused_mutex);
  async::Loop work{"work"};
  std::unique_ptr<logs::LogStore> store;
  std::unique_ptr<Shell> shell;
  std::unique_ptr<LogsCollected> collected;
  std::unique_ptr<Hub> hub;
};

}  // namespace muster::controller
