// success.rank_file, judged: every rank of the attempt has ended with status 0; did each leave its
// own file behind (RankExited.success_seen)? Pure.
#pragma once

#include <string>

#include "controller/core/core.h"

namespace muster::core {

// Nothing: all did. Otherwise the first rank that did not, and its file: the cause that breaks the
// attempt.
std::string rank_file_missing(const JobRecord& job, const AttemptRecord& attempt);

}  // namespace muster::core
