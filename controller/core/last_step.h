// success: last-step, judged: every rank of the attempt has ended with status 0; did the training
// reach its last step? Pure.
//
// Yes, when
//   a rank's log shows it (RankExited.success_seen): the engine's own line at the end, the last
//   step, or no more steps left than a line covers a rank told the last step of as many, in
//   whatever line
//   a whole checkpoint of the job is of the last step or later, whoever wrote it: what the log did
//   not show is saved. So does an attempt end that had nothing
//     left to do
//   nothing can be known: an agent is of before 0.4 and does not tell; or nobody printed a step
//   that muster can read, and yet the attempt has saved a checkpoint:
//     it did train, and whether to the end only its status says
#pragma once

#include <string>

#include "controller/core/core.h"

namespace muster::core {

// Nothing: reached. Otherwise how it ended instead: the cause that breaks the attempt, in words
// that are the same for the same shortfall but for its numbers.
std::string last_step_missing(const Ledger& ledger, const JobRecord& job,
                              const AttemptRecord& attempt);

// The highest step that the logs of its ended ranks told; -1: none.
std::int64_t last_step_reported(const AttemptRecord& attempt);

}  // namespace muster::core
