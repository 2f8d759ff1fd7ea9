// Files between this node and another one, over the controller (AgentService.FetchFiles,
// SendFiles), each transfer on a connection of its own.
//
// fetch() blocks, on the thread of a start. send() does not: a thread a transfer reads and writes.
// Thread-safe. stop() ends all of them, and returns when the last has let go, or when a file system
// has held it up for 10 s.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "agent/host/launch_record.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/rpc/channel.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::agent {

class FileStreams {
 public:
  struct Options {
    std::function<Result<rpc::Endpoint>()> endpoint;
    // Who asks: cluster, node, instance. Nothing: not joined yet.
    std::function<std::optional<v1::LogHello>()> self;
    // without a part, of one that this node waits for
    Duration idle_most = std::chrono::minutes(2);
    std::size_t sends_most = 256;
  };
  explicit FileStreams(Options options) : options_(std::move(options)) {}
  ~FileStreams() { stop(); }
  FileStreams(const FileStreams&) = delete;
  FileStreams& operator=(const FileStreams&) = delete;

  // Brings the `number`-th of the order's brings, whole or not at all.
  Result<void> fetch(const v1::NodeLaunch& order, int number, const UserEntry* owner);
  void send(v1::FilesWanted wanted);
  void stop();

 private:
  class Call;
  void send_now(const v1::FilesWanted& wanted);

  const Options options_;
  std::mutex mutex_;
  std::condition_variable all_gone_;
  std::set<grpc::ClientContext*> calls_;  // under way, each on a thread of its own
  std::size_t threads_ = 0;
  bool stopped_ = false;
};

}  // namespace muster::agent
