// What an agent keeps of itself and of its controller. Plain values.
//
// The state directory has it durably (agent/run/state_dir.h): it must survive a power loss. Without
// the epoch or the acknowledged index an older controller would be accepted.
#pragma once

#include "common/base/ids.h"

namespace muster::agent {

struct Identity {
  InstanceId instance;
  ClusterId cluster;  // empty: never joined one
  Epoch highest_epoch;
  JournalIndex acked;
  friend bool operator==(const Identity&, const Identity&) = default;
};

}  // namespace muster::agent
