// Names the file that a rank writes when it has succeeded (success.rank_file). Pure.
#pragma once

#include <string>

#include "controller/core/model/ledger.h"

namespace muster::core {

// Returns the file of one rank, with its number in it. It may begin with ${save.dir}.
std::string rank_file_of(const JobRecord& job, RankNo rank);

}  // namespace muster::core
