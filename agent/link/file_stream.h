// FileStreams copies files between this node and another one through the controller
// (AgentService.FetchFiles, SendFiles). The Agent creates it, and shares it with the threads that
// prepare starts. It is thread-safe.
//
// - Each transfer has its own connection.
// - fetch() blocks, on the thread of a start.
// - send() does not block: each transfer reads and writes on its own thread.
// - stop() ends all transfers. It returns when the last one has finished, or when a file system has
//   blocked it for 10 s.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>

#include "agent/launch/launch_record.h"
#include "agent/link/open_calls.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/time.h"
#include "common/rpc/channel.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::agent {

class FileStreams {
 public:
  struct Options {
    std::function<Result<rpc::Endpoint>()> endpoint;
    // Identity of this agent: cluster, node, instance. Empty: not joined yet.
    std::function<std::optional<v1::LogHello>()> self;
    // how long fetch() waits for the next part
    Duration idle_most = std::chrono::minutes(2);
    std::size_t sends_most = 256;
  };
  explicit FileStreams(Options options) : options_(std::move(options)) {}
  ~FileStreams() { stop(); }
  FileStreams(const FileStreams&) = delete;
  FileStreams& operator=(const FileStreams&) = delete;

  // Fetches the `number`-th entry of the order's `fetches`. No file reaches its final path before
  // all parts have arrived.
  Result<void> fetch(const v1::NodeLaunch& order, int number, const UserEntry* owner);
  void send(v1::FilesWanted wanted);
  void stop();

 private:
  void send_now(const v1::FilesWanted& wanted);

  const Options options_;
  OpenCalls calls_;
  Mutex mutex_;
  CondVar all_gone_;
  std::size_t threads_ MUSTER_GUARDED_BY(mutex_) = 0;  // each sends one transfer
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::agent
