// The whole ledger as text, derived indexes included: equal ledgers give equal text. For tests (a
// replay must dump the same) and for debugging.
#pragma once

#include <string>

#include "controller/core/ledger.h"

namespace muster::core {

std::string dump(const Ledger& ledger);
std::string dump(const JobRecord& job);

}  // namespace muster::core
