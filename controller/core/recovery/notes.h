// Decides which notes about an attempt are new, so that each is reported once. Pure.
#pragma once

#include <algorithm>

#include "controller/core/model/ledger.h"
#include "controller/core/recovery/checkpoints.h"

namespace muster::core {

// The attempt has this note already. A save directory belongs to one attempt, but what a program
// saves there is the same each time. So that note is made once for each job.
inline bool is_noted(const JobRecord& job, const AttemptRecord& attempt, Note note) {
  if (note != Note::UnknownFiles) return attempt.notes.contains(note);
  return std::ranges::any_of(job.attempts,
                             [&](const AttemptRecord& one) { return one.notes.contains(note); });
}
inline bool takes_note(const JobRecord& job, const AttemptRecord& attempt, Note note) {
  return accepts_checkpoints(job, attempt) && !is_noted(job, attempt, note);
}

}  // namespace muster::core
