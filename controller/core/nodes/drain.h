// Draining a node: an operator wants nothing new there, and what runs there may end, or is stopped
// at the deadline. Pure.
//
// The drain is a fact (NodeDrained), kept in NodeRecord::drain. It outlives restarts of the node
// and of the controller. Placement leaves such nodes out (placement/candidates.h), propose() breaks
// what is still there at the deadline, and the verdict is the operator's: it is never charged.
//
// The deadline is a time of day, by the controller's wall clock.
#pragma once

#include <optional>
#include <string>

#include "controller/core/model/ledger.h"

namespace muster::core {

// "drains (owner: new disk)", behind the node's name. Only for a node that drains.
std::string drain_text(const NodeDrained& drain);

// Nothing of a job is on the node any more, and no device of it is reserved.
bool runs_nothing(const Ledger& ledger, const NodeName& node);
// An attempt with outputs there that are not uploaded.
std::optional<AttemptKey> uploads_there(const Ledger& ledger, const NodeName& node);

// What the drains of an attempt's nodes mean for it now.
struct DrainCheck {
  const NodeRecord* over = nullptr;  // one whose deadline is over, while a part is still there
  std::optional<BootTime> check_at;  // the next deadline
};
DrainCheck check_drains(const Ledger& ledger, const AttemptRecord& attempt, Now now);

// Why the attempt is broken then: "node 'n1' drains (owner: new disk), and its deadline is over".
std::string drain_over_text(const NodeRecord& node);

}  // namespace muster::core
