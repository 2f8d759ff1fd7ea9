// Receives log bytes from agents (AgentService.PushLogs), of ranks and of processes beside them,
// into the LogStore. Owns one thread that writes, one that syncs; the streams' reactors only hand
// over. The shell's strand is never involved, logs never hold up the journal.
//
// Order on a stream: LogHello; then for each log LogOpen -> LogHave; then chunks from there,
// LogEnd. A LogHave follows each stretch of writing, one a log. An append that fails (disk full)
// stops this one stream's reading, so that the agent waits, and is tried again each second; one
// that can never succeed (a hole) ends the stream with ABORTED, and the agent begins again from
// LogHave. So does a sync that fails: what was not synced before it is gone from the store.
//
// A log is complete, for the agent and for on_complete, when it is durable: then the run directory
// with the only other copy may go. LogEnd hurries the sync that this takes. Such a log is closed on
// its stream; memory is held for those that are not durable yet.
//
// A log beside the ranks' is that of the node which LogHello named. One whose name cannot be a
// file's, or of a run that has too many of them open, is answered `unknown`: its agent leaves it,
// and the rest of the stream goes on.
// The hooks are called on the writing or the syncing thread and must be quick; they post what takes
// long.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "controller/logs/log_store.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::links {

struct LogReceiveHooks {
  std::function<bool(const JobId&, AttemptNo)> known;  // empty: all are
  // its whole log is durable; may come more than once; of ranks alone
  std::function<void(const JobId&, AttemptNo, RankNo)> on_complete;
  // one line for the log; said once a cause, and when it is over
  std::function<void(const std::string&)> on_trouble;
};

class LogReceiver {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::PushLogsRequest, v1::PushLogsResponse>;

  // `store` outlives this.
  static std::unique_ptr<LogReceiver> start(logs::LogStore& store, LogReceiveHooks hooks);
  virtual ~LogReceiver() = default;

  // The handler of AgentService.PushLogs: return AgentService's override with it. Who may call has
  // been checked. A refusal: finish with `refused` instead of serving.
  virtual Reactor* push_logs(grpc::CallbackServerContext* context,
                             const grpc::Status& refused = grpc::Status::OK) = 0;

  // Before the server's Shutdown: ends every stream, writes what was taken in, ends the threads.
  // Idempotent.
  virtual void stop() = 0;
};

}  // namespace muster::links
