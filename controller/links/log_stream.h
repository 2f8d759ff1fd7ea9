// One agent's PushLogs stream: a queue in, a map of answers out. gRPC's threads fill the one and
// the writing thread of LogReceiver drains it; answers are merged, one LogHave a log, while a write
// is under way. Thread-safe; lives until gRPC is done with it and nobody else holds it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "controller/links/log_receive.h"

namespace muster::links {

// What a waiting message costs in memory, about. Those without bytes (LogOpen, LogEnd, a gap alone)
// cost as well: millions of them are as many.
[[nodiscard]] std::size_t queue_cost(const v1::PushLogsRequest& request);

class LogStream final : public LogReceiver::Reactor {
 public:
  // taken in and not yet written: beyond it the agent waits
  static constexpr std::size_t kQueueBytes = 4 << 20;

  // `ready`: there is something to take. Called on gRPC's threads.
  static std::shared_ptr<LogStream> make(
      std::function<void(const std::shared_ptr<LogStream>&)> ready,
      std::function<void(const LogStream*)> done);

  void begin();
  void end(const grpc::Status& status);  // idempotent

  // --- the writing thread ------------------------------------------------------------------------
  // What came in, in order. `closed`: nothing will come any more.
  std::deque<v1::PushLogsRequest> take(bool& closed);
  [[nodiscard]] bool ended();
  // Back to the front: to be tried again.
  void put_back(std::deque<v1::PushLogsRequest> rest);
  // All that was taken has been dealt with: read on.
  void read_on();
  bool greeted = false;  // that thread's own
  NodeName node;         // that thread's own; as LogHello named it

  // --- any thread --------------------------------------------------------------------------------
  // Answers of one log are merged: of two threads' words the one that came first may be sent last.
  void answer(const logs::LogKey& key, const v1::LogHave& have);
  // The logs that were opened on this stream and are not durable yet.
  void open(const logs::LogKey& key);
  void close(const logs::LogKey& key);
  [[nodiscard]] bool is_open(const logs::LogKey& key);
  // Logs beside the ranks' of that log's run that are open, itself not counted.
  [[nodiscard]] std::size_t auxiliaries_open(const logs::LogKey& key);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  LogStream() = default;
  void write_locked();
  std::function<void(const std::shared_ptr<LogStream>&)> ready_;
  std::function<void(const LogStream*)> done_;
  std::shared_ptr<LogStream> self_;  // until OnDone

  std::mutex mutex_;
  std::deque<v1::PushLogsRequest> queue_;
  std::size_t queued_bytes_ = 0;
  bool reading_ = false, writing_ = false, closed_ = false, ended_ = false;
  v1::PushLogsRequest request_;
  v1::PushLogsResponse response_;
  std::map<logs::LogKey, v1::LogHave> answers_;
  std::set<logs::LogKey> open_;
};

}  // namespace muster::links
