// What a person should know of an attempt, and is told once. Pure.
#pragma once

#include <algorithm>

#include "controller/core/checkpoints.h"
#include "controller/core/core.h"

namespace muster::core {

// There is a note of it already. A save directory belongs to an attempt, but what a program saves
// into it is the same each time: once a job.
inline bool is_noted(const JobRecord& job, const AttemptRecord& attempt, Note note) {
  if (note == Note::LossNotFinite) return attempt.notes.contains(note);
  return std::ranges::any_of(job.attempts,
                             [&](const AttemptRecord& one) { return one.notes.contains(note); });
}
inline bool takes_note(const JobRecord& job, const AttemptRecord& attempt, Note note) {
  return accepts_checkpoints(job, attempt) && !is_noted(job, attempt, note);
}

}  // namespace muster::core
