// What a start needs of file systems and tables that may be slow, or hang for ever: the checks, the
// directories, the links, the programs. Blocking; on a thread of its own, so that a dead file
// system of one run holds up no other run's lease.
#pragma once

#include <cstddef>
#include <deque>
#include <expected>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "agent/host/container_image.h"
#include "agent/host/container_tool.h"
#include "agent/host/launch_record.h"
#include "agent/host/start_checks.h"
#include "common/async/loop.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/rundir/layout.h"

namespace muster::agent {

// Brings the n-th of an order's brings; those that are made belong to the user, when one is given.
// Blocking.
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

// Checks, then makes the directories and the links, then the launch record, which it does not
// write.
StartPrepared prepare_start(StartRequest request);

// What the job asked for is wrong wherever it starts; all else is this node's, or this moment's.
v1::StartFailure failure_of(const Error& error);

// What the start on this thread is at, from here on: the sentence of those that are refused because
// it hangs. On other threads than those of StartThreads it says it to nobody.
void now_preparing(std::string what);
struct StartDoing;

// One thread a call, at most `most` at a time: a thread that hangs hangs alone, nobody waits for
// it, and what it says after close() is dropped. Calls beyond that wait their turn, in order. When
// every thread has been at one start for `patience`, those that wait are refused as this node's
// fault, with what hangs; so is a call that gets no thread at all. On the loop, all of it.
class StartThreads {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr Duration kPatience = std::chrono::seconds(10);

  explicit StartThreads(async::Loop& loop, std::size_t most = kMost, Duration patience = kPatience);
  ~StartThreads() { close(); }
  StartThreads(const StartThreads&) = delete;
  StartThreads& operator=(const StartThreads&) = delete;

  // `then` is called on the loop, never from inside this call.
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
  std::list<std::shared_ptr<StartDoing>> at_work_;  // the longest first
  std::deque<Start> waiting_;
  async::Timer timer_;
};

}  // namespace muster::agent
