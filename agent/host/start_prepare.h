// What a start needs of file systems and tables that may be slow, or hang for ever: the checks, the directories, the links, the programs. Blocking; on a thread
// of its own, so that a dead file system of one run holds up no other run's lease.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "agent/host/launch_record.h"
#include "agent/host/start_checks.h"
#include "common/async/loop.h"
#include "common/base/error.h"
#include "common/rundir/layout.h"

namespace muster::agent {

struct StartRequest {
  v1::NodeLaunch order;
  NodeFacts node;
  rundir::RunLayout layout;
  LaunchContext context;  // without user and layout
};
using StartPrepared = std::expected<rundir::v1::Launch, Refusal>;

// Checks, then makes the directories and the links, then the launch record, which it does not write.
StartPrepared prepare_start(StartRequest request);

// What the job asked for is wrong wherever it starts; all else is this node's, or this moment's.
v1::StartFailure failure_of(const Error& error);

// One thread a call. A thread that hangs hangs alone: nobody waits for it, and what it says after close() is dropped.
class StartThreads {
 public:
  explicit StartThreads(async::Loop& loop);
  ~StartThreads() { close(); }
  StartThreads(const StartThreads&) = delete;
  StartThreads& operator=(const StartThreads&) = delete;

  // `then` is called on the loop. Where no thread is to be had, `work` is done here and now.
  void run(std::function<StartPrepared()> work, std::function<void(StartPrepared)> then);
  void close();  // on the loop

 private:
  struct Home;
  std::shared_ptr<Home> home_;
};

}  // namespace muster::agent
