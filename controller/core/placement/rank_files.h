// Judges success.rank_file: every rank of the attempt has ended with status 0; did each write its
// own file (RankExited.success_seen)? Pure.
#pragma once

#include <string>

#include "controller/core/model/ledger.h"

namespace muster::core {

// The cause that breaks the attempt: the first rank that did not, and its file. Empty: no rank is
// known that did not; recovery/unknown_success.h has those of which nothing is known.
std::string rank_file_missing(const JobRecord& job, const AttemptRecord& attempt);

}  // namespace muster::core
