// Judges `success: last-step`: every rank of the attempt has ended with status 0; did the training
// reach its last step? Pure.
//
// It did, if one of these is true:
//
// - A rank's log shows it (RankExited.success_seen): the engine's own line at the end, the last
//   step, or no more steps left than a line covers.
// - A rank's log has the last step of the total, in any line.
// - A complete checkpoint of the job, not quarantined, is of the last step or later, whoever wrote
//   it: what the log did not show is saved. An attempt that had nothing left to do ends this way
//   too.
// - Nothing can be known: no rank printed a step that muster can read, and yet the attempt saved a
//   checkpoint. It did train, and only its status shows whether it reached the end.
#pragma once

#include <string>

#include "controller/core/model/ledger.h"

namespace muster::core {

// Empty: reached. Otherwise the cause that breaks the attempt: a sentence how the training ended.
// Equal shortfalls give the same words, except for the numbers.
std::string last_step_missing(const JobRecord& job, const AttemptRecord& attempt);

// The highest step in the logs of its ended ranks. -1: none.
std::int64_t last_step_reported(const AttemptRecord& attempt);

}  // namespace muster::core
