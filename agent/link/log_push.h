// LogPush sends the bytes of rank logs and auxiliary logs to the controller
// (AgentService.PushLogs), on its own channel. The Agent creates and destroys it. It has two
// threads: one writes, the other reads the answers.
//
// It keeps nothing on disk: the controller reports the offset at which each log continues.
//
//   connect -> LogHello -> for each log: LogOpen -> (LogHave) -> chunks ... -> LogEnd -> (LogHave,
//   complete)
//
// - At most `window` bytes of all logs together are unacknowledged on a stream.
// - Logs take turns; logs of failed ranks get more turns.
// - A broken stream is opened again after a back-off of 50 to 500 ms.
// - A log that the controller does not know is skipped until the next connection.
//
// A run's logs count as collected when the controller has the logs of all its ranks. Then the run
// directory is removed. So the ends of the rank logs are not sent before all auxiliary logs of the
// run are complete.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/logs/log_source.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct LogPushOptions {
  std::size_t chunk = 256 << 10;
  std::uint64_t window = 8 << 20;
};

struct LogPushHooks {
  // Called at each connection attempt. The channel must share no connection with the control stream
  // (rpc::make_channel).
  std::function<std::shared_ptr<grpc::Channel>()> channel;
  // Returns the first message to send, or nothing while there is no controller. In that case it is
  // called again every 100 ms, without a connection attempt.
  std::function<std::optional<v1::LogHello>()> hello;
  // one line for the agent's log, reported once until pushing works again
  std::function<void(const std::string&)> on_trouble;
  // The controller has a whole log of this run. Called on a thread of LogPush: post.
  std::function<void(const RunKey&)> on_complete;
};

class LogPush {
 public:
  // `source` must outlive the LogPush.
  static std::unique_ptr<LogPush> start(LogPushOptions options, LogPushHooks hooks,
                                        LogSource& source);
  virtual ~LogPush() = default;
  // Cuts the stream and ends the threads. Idempotent.
  virtual void stop() = 0;
};

}  // namespace muster::agent
