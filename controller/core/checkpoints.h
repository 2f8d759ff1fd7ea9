// Which checkpoints count, and from which one the next attempt goes on. Pure.
#pragma once

#include <optional>
#include <string>

#include "controller/core/core.h"

namespace muster::core {

// The newest by (step, attempt) over all attempts that is not quarantined (as those that hold
// weights
// alone are); where there is none, what the job starts with (start_point.h). A spec that does not
// resume has but the weights that it starts with.
std::optional<ResumePoint> newest_checkpoint(const JobRecord& job);

// The checkpoint that this attempt, which ends with this verdict, gives reason to quarantined: the
// newest one, when it and the attempt before it both went on from that, failed the same way within
// limits.suspect_steps of it, by something that a checkpoint can cause, and an older one is there
// to go on from: of its own, or the one that it starts with and goes on from, which itself is never
// quarantined. Nothing: none.
std::optional<ResumePoint> suspect_checkpoint(const JobRecord& job, const AttemptRecord& attempt,
                                              const Verdict& verdict, std::int64_t best_step,
                                              const Limits& limits);

// The checkpoint of the job's own that this attempt was to go on from, where starts have read it
// and found it torn, on the word of the node that wrote what is torn, or of two: of a file of
// another node's a file system may show one of them what is not so. Of what is not there at all,
// though the rest is: on the word of all nodes that wrote it, or of two that did not, who see the
// same. What could not be read, and a directory that is not there, is no such word: one missing
// mount must not condemn every checkpoint.
struct TornCheckpoint {
  ResumePoint point;
  std::string seen;  // who says what of it
  // to go on from, when it is quarantined; nothing: there is none, and it is not quarantined to
  // begin
  // anew
  std::optional<ResumePoint> older;
};
std::optional<TornCheckpoint> torn_checkpoint(const JobRecord& job, const AttemptRecord& attempt);

// One of the job's own, that no attempt goes on from any more.
bool is_quarantined(const JobRecord& job, const ResumePoint& point);

// A checkpoint of this attempt may still be accepted: it is the current one, and its ranks may
// still advance or did end well. Once the fence has let go of an attempt, whatever an old writer
// finishes counts for nothing.
bool accepts_checkpoints(const JobRecord& job, const AttemptRecord& attempt);
bool has_checkpoint(const JobRecord& job, AttemptNo attempt, std::int64_t step);

// What an attempt has to get beyond to be progress: the best step of those before it, and that of
// the checkpoint that the job went on from at its start; -1: any step is.
std::int64_t step_to_beat(const JobRecord& job);

// The step that it was handed to go on from; nothing: it begins at the beginning, with weights
// alone perhaps.
std::optional<std::int64_t> goes_on_from(const JobRecord& job, const AttemptRecord& attempt);
// Its first step is not behind the one that it was handed: the program has not read it. "attempt 2
// did not go on from step 20: began at 2; ..."; empty: it has, or nobody knows.
std::string went_back_text(const JobRecord& job, const AttemptRecord& attempt);

// The highest step that this attempt is known to have done: readings, first step and checkpoints
// together; -1 = none.
std::int64_t best_step_of(const Presence& presence, const JobRecord& job,
                          const AttemptRecord& attempt);

}  // namespace muster::core
