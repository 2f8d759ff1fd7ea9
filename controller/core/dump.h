// Prints the whole ledger as text, derived indexes included. Pure.
//
// Equal ledgers give equal text. Tests use it, because a replay must dump the same, and so does
// debugging.
#pragma once

#include <string>

#include "controller/core/model/ledger.h"

namespace muster::core {

std::string dump(const Ledger& ledger);
std::string dump(const JobRecord& job);

}  // namespace muster::core
