// Starting is the start of one run, as long as it may still fail: from the order until a worker has
// claimed the run, or until the run is refused. The run's Host::Entry owns it, on the agent's loop.
// Private to agent/run.
#pragma once

#include <cstdint>
#include <memory>

#include "agent/launch/start_progress.h"
#include "common/async/loop.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct Starting {
  enum class Stage : std::uint8_t {
    Refusing,   // nothing is started: the run is being refused
    Reading,    // its steps run, and may still read the checkpoint to resume from
    Preparing,  // its steps run
    Spawned,    // a worker may claim the run
  };
  Stage stage = Stage::Refusing;
  bool sets_up = false;                             // it has reached a step that takes long
  google::protobuf::Duration grace{};               // until the launch record has it
  std::shared_ptr<const StartProgress> progress{};  // null until its steps run
  std::unique_ptr<async::Timer> stop_timer{};       // a stop waits for the end of Reading

  void stop_reading() {
    if (stage == Stage::Reading) stage = Stage::Preparing;
  }
};

}  // namespace muster::agent
