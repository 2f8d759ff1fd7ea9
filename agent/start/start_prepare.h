// prepare_start() does the part of a start that uses file systems and tables which may be slow or
// hang: the checks, the directories, the links, the programs. It blocks, on its own thread, so that
// a dead file system of one run does not delay another run's lease. Host::Impl owns the
// StartThreads.
#pragma once

#include <cstddef>
#include <deque>
#include <expected>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "agent/container/container_image.h"
#include "agent/container/container_tool.h"
#include "agent/launch/launch_record.h"
#include "agent/launch/now_preparing.h"
#include "agent/start/start_checks.h"
#include "common/async/loop.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/rundir/layout.h"

namespace muster::agent {

// Fetches the n-th entry of the order's `fetches`. Files that are made belong to the user, if one
// is given. Blocking.
using FetchFn = std::function<Result<void>(const v1::NodeLaunch&, int, const UserEntry*)>;

struct StartRequest {
  v1::NodeLaunch order;
  NodeFacts node;
  rundir::RunLayout layout;
  LaunchContext context;  // without user and layout
  ContainerOptions container{};
  ImageFetch image{};
  FetchFn fetch{};
};
using StartPrepared = std::expected<rundir::v1::Launch, Refusal>;

// Checks, makes the directories and the links, and then returns the launch record, which it does
// not write.
StartPrepared prepare_start(StartRequest request);

// Launch failure: what the job asked for is wrong on every node. All other errors are a problem of
// this node, or of this moment.
v1::StartFailure failure_of(const Error& error);

// Runs each call on its own thread, at most `most` at a time. A thread that hangs blocks nothing
// else, and nobody waits for it. Its result after close() is dropped.
//
// Further calls wait, in order. If every thread has worked on one start for `patience`, the waiting
// calls are refused as the node's fault, with what hangs. A call that gets no thread at all is also
// refused. All methods run on the loop.
class StartThreads {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr Duration kPatience = std::chrono::seconds(10);

  explicit StartThreads(async::Loop& loop, std::size_t most = kMost, Duration patience = kPatience);
  ~StartThreads() { close(); }
  StartThreads(const StartThreads&) = delete;
  StartThreads& operator=(const StartThreads&) = delete;

  // `then` is called on the loop, never inside this call.
  void run(std::function<StartPrepared()> work, std::function<void(StartPrepared)> then);
  void close();

 private:
  struct Home;
  struct Start {
    std::function<StartPrepared()> work;
    std::function<void(StartPrepared)> then;
  };
  void begin(Start start);
  void go_on();
  void answer(Start start, StartPrepared outcome);
  [[nodiscard]] Refusal blocked(BootTime now) const;

  const std::shared_ptr<Home> home_;
  const std::size_t most_;
  const Duration patience_;
  std::list<std::shared_ptr<StartDoing>> at_work_;  // the oldest first
  std::deque<Start> waiting_;
  async::Timer timer_;
};

}  // namespace muster::agent
