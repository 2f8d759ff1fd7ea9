// Receives log bytes from agents (AgentService.PushLogs), of ranks and of auxiliary processes, and
// writes them to the LogStore. main() of the controller owns it. It owns one thread that writes and
// one that syncs; the streams' reactors, on gRPC's threads, only pass messages on.
//
// It never uses the shell's strand, and logs never delay the journal.
//
// The order of messages on a stream:
// 1. LogHello;
// 2. for each log, LogOpen, which is answered with LogHave;
// 3. chunks from that offset on, and LogEnd.
//
// After each series of writes, the agent gets one LogHave for each log. When an append fails (disk
// full), this stream is not read any more, so that the agent waits; the append is retried each
// second. An append that can never succeed (a hole) ends the stream with ABORTED, and the agent
// begins again from LogHave. A failed sync ends the stream, too: the store has lost what was not
// synced before.
//
// A log is complete, for the agent and for on_complete, when it is durable. Only then may the run
// directory with the only other copy go. LogEnd makes this sync start earlier. A durable log is
// closed on its stream; memory is used only for logs that are not durable yet.
//
// A log of an auxiliary process belongs to the node that LogHello named. A log is answered
// `unknown` if its name cannot be a file name, or if it is not this agent's (is_of). Its agent then
// leaves this log, and the rest of the stream continues.
//
// The hooks are called on the writing or the syncing thread and must be quick; they post long work.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "controller/access/revocations.h"
#include "controller/logs/log_store.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::links {

struct LogReceiveHooks {
  std::function<bool(const JobId&, AttemptNo)> known;  // empty: all are known
  // Does this node write this log, from this state directory? Asked of nodes that are known by
  // their certificates. Empty: it does.
  std::function<bool(const logs::LogKey&, const NodeName&, const InstanceId&)> is_of;
  // Is it a log of an attempt of which the node has no part? Then that is written down. Empty: no.
  std::function<bool(const logs::LogKey&, const NodeName&)> is_others = {};
  // The whole log of this rank is durable. May be called more than once. Never called for auxiliary
  // processes.
  std::function<void(const JobId&, AttemptNo, RankNo)> on_complete;
  // A stream begins: what ends it when its certificate is revoked. Empty: nothing does.
  std::function<controller::Revocations::Stay(grpc::ServerContextBase&)> enter = {};
  // A node sent logs in another one's name, or logs of others (is_others).
  std::function<void(const Error&)> on_refused;
  // one line for the log: once for each cause, and when the trouble is over
  std::function<void(const std::string&)> on_trouble;
};

class LogReceiver {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::PushLogsRequest, v1::PushLogsResponse>;

  // `store` must outlive the receiver.
  static std::unique_ptr<LogReceiver> start(logs::LogStore& store, LogReceiveHooks hooks);
  virtual ~LogReceiver() = default;

  // The handler of AgentService.PushLogs: the override of AgentService returns its result. The port
  // has checked that a node calls; the LogHello must be of this node.
  virtual Reactor* push_logs(grpc::CallbackServerContext* context) = 0;

  // Call this before the server's Shutdown. It ends every stream, writes what was received, and
  // ends the threads. Idempotent.
  virtual void stop() = 0;
};

}  // namespace muster::links
