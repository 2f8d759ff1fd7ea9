// StoreReports lists stores for clients (StoreCheck), and reports what is there
// (AgentService.ReportStore). The Agent owns it. Thread-safe; check() does not block: at most
// kThreads lists are made at a time, and the other checks wait, but not longer than their clients.
// stop() ends what runs.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "agent/link/open_calls.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/io/unique_fd.h"
#include "common/rpc/channel.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

class StoreReports {
 public:
  static constexpr std::size_t kThreads = 4;
  // More are refused. The controller asks for no more at a time, but forgets those whose clients
  // have gone.
  static constexpr std::size_t kWaitingMost = 64;
  struct Options {
    std::function<Result<rpc::Endpoint>()> endpoint;
    // Identity of this agent: cluster, node, instance. Empty: not joined yet.
    std::function<std::optional<v1::LogHello>()> self;
  };
  explicit StoreReports(Options options);
  ~StoreReports() { stop(); }
  StoreReports(const StoreReports&) = delete;
  StoreReports& operator=(const StoreReports&) = delete;

  void check(v1::StoreCheck check);
  void stop();

 private:
  void work();
  void report(const v1::StoreCheck& check, v1::ReportStoreRequest found);

  const Options options_;
  OpenCalls calls_;
  io::UniqueFd ends_;  // an eventfd: readable from stop() on
  Mutex mutex_;
  CondVar all_gone_;
  struct Waiting {
    v1::StoreCheck check;
    std::chrono::steady_clock::time_point until;
    std::string refusal;  // empty: list it
  };
  std::deque<Waiting> waiting_ MUSTER_GUARDED_BY(mutex_);
  std::size_t threads_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::agent
