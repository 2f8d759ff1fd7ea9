// Sends log bytes, of ranks and of processes beside them, to the controller
// (AgentService.PushLogs), on a channel of its own. Owns two threads (one writes, one reads the
// answers) and keeps nothing on disk: where to go on is what the controller says it has.
//
//   connect -> LogHello -> for each log: LogOpen -> (LogHave) -> chunks ... -> LogEnd -> (LogHave,
//   complete)
//
// At most `window` bytes are unacknowledged on a stream, of all logs together; logs take turns,
// those of failed ranks have more of them. A broken stream is opened again after a back-off of 50
// to 500 ms. A log that the controller does not know is left alone until the next connection.
//
// A run's logs count as collected when the controller has those of all ranks, and then its
// directory goes: the ends of the ranks' logs are held back until all of those beside them are
// complete.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/watch/log_source.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct LogPushOptions {
  std::size_t chunk = 256 << 10;
  std::uint64_t window = 8 << 20;
};

struct LogPushHooks {
  // Each connection attempt: a channel that shares no connection with the control stream's
  // (rpc::make_channel).
  std::function<std::shared_ptr<grpc::Channel>()> channel;
  // Credentials (rpc::authorize).
  std::function<void(grpc::ClientContext&)> prepare;
  // The controller takes the logs of processes beside the ranks, which it says on the control
  // stream. Asked again and again; empty: it does not. To one that does not know of them their
  // bytes would be rank 0's: none is sent before it has answered with the log's own name.
  std::function<bool()> takes_auxiliaries;
  // What to say first; nothing while there is no controller to go to: asked again every 100 ms,
  // which costs no try.
  std::function<std::optional<v1::LogHello>()> hello;
  // one line for the agent's log, said once until it works again
  std::function<void(const std::string&)> on_trouble;
  // a log of this run is wholly there; on LogPush's thread: post
  std::function<void(const RunKey&)> on_complete;
};

class LogPush {
 public:
  // `source` outlives this.
  static std::unique_ptr<LogPush> start(LogPushOptions options, LogPushHooks hooks,
                                        LogSource& source);
  virtual ~LogPush() = default;
  // What takes_auxiliaries says may be another thing than before.
  virtual void check_again() = 0;
  // Cuts the stream and ends the threads; idempotent.
  virtual void stop() = 0;
};

}  // namespace muster::agent
