// Turns a journal row into the public event: its type's name and one sentence. Pure.
//
// Add types, never rename one: scripts wait for them.
#pragma once

#include "controller/core/model/ledger.h"
#include "controller/journal/journal.h"
#include "muster/v1/event.pb.h"

namespace muster::controller {

// `after`: the ledger with the row applied. It gives names and phases; a job that is not in it is
// described without them.
v1::Event describe(const journal::Row& row, const core::Ledger& after);

}  // namespace muster::controller
