// What an agent keeps of itself and of its controller. Plain values.
//
// The state directory has it durably (agent/run/state_dir.h): it must survive a power loss. Without
// the lineage, the epoch or the acknowledged index, an older controller would be accepted.
#pragma once

#include "common/base/ids.h"
#include "common/base/lineage.h"

namespace muster::agent {

struct Identity {
  InstanceId instance;
  ClusterId cluster;    // empty: never joined one
  Lineage lineage;      // the newest that it has seen
  Epoch highest_epoch;  // of the lineage
  JournalIndex acked;   // of the lineage
  friend bool operator==(const Identity&, const Identity&) = default;
};

}  // namespace muster::agent
