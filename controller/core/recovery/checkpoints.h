// Decides which checkpoints count, and which one the next attempt resumes from. Pure.
#pragma once

#include <optional>
#include <string>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

// The job's newest checkpoint by (step, attempt), over all attempts. Quarantined ones do not count;
// those with weights alone are quarantined.
//
// If there is none, the result is what the job starts with (start_point.h). A spec that does not
// resume can have only the weights that it starts with.
std::optional<ResumePoint> newest_checkpoint(const JobRecord& job);

// The checkpoint that this attempt gives reason to quarantine. The attempt ends with this verdict.
// Nothing: there is none. All of these must be true:
//
// - This attempt and the one before it resumed from the checkpoint, and it is still the newest one.
// - Both failed in the same way, within limits.suspect_steps of it.
// - A bad checkpoint can cause such a failure.
// - There is an older point to resume from: a checkpoint of the job, or its start point. The start
//   point itself is never quarantined.
std::optional<ResumePoint> suspect_checkpoint(const JobRecord& job, const AttemptRecord& attempt,
                                              const Verdict& verdict, std::int64_t best_step,
                                              const Limits& limits);

// The job's own checkpoint that this attempt had to resume from, if starts have read it and found
// it torn.
//
// For a short or damaged file, the report of the node that wrote it is enough, or reports of two
// nodes. A file system may show one node a wrong state of another node's file. For missing shards,
// the reports of all nodes that wrote the checkpoint are enough, or equal reports of two nodes that
// did not write it. Unreadable files and a missing directory do not count: one missing mount must
// not condemn every checkpoint.
struct TornCheckpoint {
  ResumePoint point;
  std::string seen;  // which node found what
  // What to resume from when it is quarantined. Nothing: there is no older one. Then it is not
  // quarantined, because the job must not begin anew by itself.
  std::optional<ResumePoint> older;
};
std::optional<TornCheckpoint> torn_checkpoint(const JobRecord& job, const AttemptRecord& attempt);

// A checkpoint of the job's own that no attempt resumes from any more.
bool is_quarantined(const JobRecord& job, const ResumePoint& point);

// Whether a checkpoint of this attempt may still be accepted: it is the job's newest attempt, and
// the job goes on or the attempt has ended well. So what a silent node saved counts even if the
// node returns after the fence, as long as the next attempt is not placed. Once that is placed,
// whatever an old writer finishes does not count.
bool accepts_checkpoints(const JobRecord& job, const AttemptRecord& attempt);
bool has_checkpoint(const JobRecord& job, AttemptNo attempt, std::int64_t step);

// The step that an attempt must exceed to make progress: the best step of earlier attempts, or the
// step of the start checkpoint that the job resumed from. -1: any step is progress.
std::int64_t step_to_beat(const JobRecord& job);

// The step that the attempt was given to resume from. Nothing: it begins at the beginning, perhaps
// with weights alone.
std::optional<std::int64_t> goes_on_from(const JobRecord& job, const AttemptRecord& attempt);
// Set if the attempt's first step is not behind the step that it was given: the program did not
// read the checkpoint. "attempt 2 did not go on from step 20: began at 2; ...". Empty: it did read
// it, or that is not known.
std::string went_back_text(const JobRecord& job, const AttemptRecord& attempt);

// The highest step that this attempt is known to have done, from readings, first step and
// checkpoints. -1: none.
std::int64_t best_step_of(const Presence& presence, const JobRecord& job,
                          const AttemptRecord& attempt);

}  // namespace muster::core
