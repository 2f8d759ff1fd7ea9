// One agent's PushLogs stream: a queue of requests, and a map of answers. The LogReceiver makes it;
// it keeps itself until OnDone, and is destroyed when nobody else keeps it. It is thread-safe:
// gRPC's threads fill the queue, and the writing thread of the LogReceiver empties it.
//
// While a write is in progress, answers are merged, to one LogHave for each log.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/tls_port.h"
#include "controller/access/revocations.h"
#include "controller/links/log_receive.h"

namespace muster::links {

// The approximate memory that a waiting message uses. Messages without bytes (LogOpen, LogEnd, a
// gap alone) count as well, because there may be millions of them.
[[nodiscard]] std::size_t queue_cost(const v1::PushLogsRequest& request);

class LogStream final : public LogReceiver::Reactor {
 public:
  // received and not yet written; beyond this the agent waits
  static constexpr std::size_t kQueueBytes = 4 << 20;
  // Answers that wait for the write before them; from this on nothing more is read until they are
  // written. Each message may need an answer of its own, so an agent that sends and never reads
  // would use memory without bound. Muster's agent reads while it sends.
  static constexpr std::size_t kAnswersMost = 4096;

  // `ready` is called on gRPC's threads when there is something to take.
  static std::shared_ptr<LogStream> make(
      std::function<void(const std::shared_ptr<LogStream>&)> ready,
      std::function<void(const LogStream*)> done, rpc::Caller caller,
      controller::Revocations::Stay stay = {});
  [[nodiscard]] const rpc::Caller& caller() const { return caller_; }

  void begin();
  void end(const grpc::Status& status);  // idempotent

  // --- the writing thread ------------------------------------------------------------------------
  // Returns what was received, in order. `closed` is set when nothing more will arrive.
  std::deque<v1::PushLogsRequest> take(bool& closed);
  [[nodiscard]] bool ended();
  // Puts the requests back at the front, to be tried again.
  void put_back(std::deque<v1::PushLogsRequest> rest);
  // Call this when all that was taken is handled: reading continues, now or when the answers are
  // written.
  void read_on();
  bool greeted = false;  // used only by that thread
  NodeName node;         // used only by that thread; from LogHello, as is `instance`
  InstanceId instance;

  // --- any thread --------------------------------------------------------------------------------
  // Merges the answers of one log: of two threads' answers, the earlier one may be sent last.
  void answer(const logs::LogKey& key, const v1::LogHave& have);
  // The logs that were opened on this stream and are not durable yet.
  void open(const logs::LogKey& key);
  void close(const logs::LogKey& key);
  [[nodiscard]] bool is_open(const logs::LogKey& key);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  LogStream(rpc::Caller caller, controller::Revocations::Stay stay)
      : caller_(std::move(caller)), stay_(std::move(stay)) {}
  void read_locked() MUSTER_REQUIRES(mutex_);  // if there is room
  void write_locked() MUSTER_REQUIRES(mutex_);
  const rpc::Caller caller_;
  controller::Revocations::Stay stay_;  // until OnDone
  std::function<void(const std::shared_ptr<LogStream>&)> ready_;
  std::function<void(const LogStream*)> done_;

  Mutex mutex_;
  std::shared_ptr<LogStream> self_ MUSTER_GUARDED_BY(mutex_);  // until OnDone
  std::deque<v1::PushLogsRequest> queue_ MUSTER_GUARDED_BY(mutex_);
  std::size_t queued_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool reading_ MUSTER_GUARDED_BY(mutex_) = false, writing_ MUSTER_GUARDED_BY(mutex_) = false;
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false, ended_ MUSTER_GUARDED_BY(mutex_) = false;
  v1::PushLogsRequest request_ MUSTER_GUARDED_BY(mutex_);
  v1::PushLogsResponse response_ MUSTER_GUARDED_BY(mutex_);
  std::map<logs::LogKey, v1::LogHave> answers_ MUSTER_GUARDED_BY(mutex_);
  std::set<logs::LogKey> open_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::links
