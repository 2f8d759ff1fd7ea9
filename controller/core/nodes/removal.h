// Removing a node that is gone for good: when it may go, and what that means for the attempts that
// were there. Pure.
//
// After that, the ledger has nothing of the node but the record of its certificates. A machine that
// comes back with its certificate registers like any other; one with another key joins by
// 'muster node replace'.
#pragma once

#include <string>
#include <vector>

#include "controller/core/model/ledger.h"
#include "controller/core/model/presence.h"

namespace muster::core {

// Why the node may not be removed now, and what would help. Empty: it may.
std::string keeps_node(const Ledger& ledger, const Presence& presence, const NodeRecord& node);

// What nobody will report any more: of attempts that have ended, the parts on this node that are
// not swept, and the logs that will not come. Only for a node that may be removed.
std::vector<EventBody> close_parts(const Ledger& ledger, const NodeName& node, WallTime now);

}  // namespace muster::core
