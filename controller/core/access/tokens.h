// Decides about tokens that are made and revoked: for nodes that join, and for users who log in.
// Pure.
#pragma once

#include "controller/core/model/access_input.h"
#include "controller/core/model/decision.h"
#include "controller/core/model/ledger.h"

namespace muster::core {

// Conflict: the id is taken; make another one.
Decision decide_create(const Ledger& ledger, const CreateToken& input, WallTime now);
// Nothing happens to a token that was revoked before.
Decision decide_revoke(const Ledger& ledger, const RevokeToken& input);

}  // namespace muster::core
