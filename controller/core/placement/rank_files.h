// Judges success.rank_file: every rank of the attempt has ended with status 0; did each write its
// own file (RankExited.success_seen)? Pure.
#pragma once

#include <string>

#include "controller/core/model/ledger.h"

namespace muster::core {

// Empty: all did. Otherwise the cause that breaks the attempt: the first rank that did not, and its
// file.
std::string rank_file_missing(const JobRecord& job, const AttemptRecord& attempt);

}  // namespace muster::core
