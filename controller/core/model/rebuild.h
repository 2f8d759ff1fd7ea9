// Derives again, from the ledger's facts alone, what apply() keeps up to date event by event. Pure.
//
// Nothing in the daemons needs it. It is the definition of Indexes, and a check of apply().
#pragma once

#include <string>

#include "controller/core/model/ledger.h"

namespace muster::core {

Indexes rebuild(const Ledger& ledger);

// Names the first derived value that is not what the facts give: "queue", "attempt 3 of job
// '01...': parts_swept". Empty: all are right.
std::string wrongly_derived(const Ledger& ledger);

}  // namespace muster::core
