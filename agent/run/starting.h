// Starting is the start of one run, as long as it may still fail: from the order until a worker has
// claimed the run, or until the run is refused. The run's Host::Entry owns it, on the agent's loop.
// Private to agent/run.
#pragma once

#include <memory>

#include "agent/launch/start_progress.h"
#include "common/async/loop.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct Starting {
  google::protobuf::Duration grace{};               // until the launch record has it
  std::shared_ptr<const StartProgress> progress{};  // null: the run is refused, nothing is started
  bool spawned = false;                             // from now on a worker may claim the run
  bool sets_up = false;                             // it has reached a step that takes long
  bool reads_checkpoint = false;                    // the one to resume from
  std::unique_ptr<async::Timer> stop_timer{};       // a stop waits for that read
};

}  // namespace muster::agent
