// Text about a job's training progress: what ps, show and the live view print about its steps.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "common/base/time.h"
#include "muster/v1/job.pb.h"

namespace muster::render {

// Returns "12/40" or "12", or "-" before the first step.
std::string step_text(const v1::Progress& progress);
// Returns "2.1034". "NaN": the last step's loss is not a finite number. "-": the step reported no
// loss.
std::string loss_text(const v1::Progress& progress, int digits = 4);
// Returns the time since the last step of the current attempt. Returns nothing if there is no step
// yet, or its time is not known.
std::optional<Duration> step_age(const v1::Job& job, WallTime now);
// True if the job's ranks run and the last step is no older than a few steps take. Otherwise there
// is no rate and no remaining time.
bool is_stepping(const v1::Job& job, WallTime now);
// True if the attempt got a checkpoint to resume from, but its first step does not come after that
// checkpoint.
bool went_back(const v1::Attempt& attempt);
// Returns the seconds for a step of the current attempt; 0: not known.
double step_seconds(const v1::Job& job);
// Returns the remaining time, "2h05m". "-": it is not known, or no steps arrive.
std::string eta_text(const v1::Job& job, WallTime now);

}  // namespace muster::render
