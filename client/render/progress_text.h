// How a job's training goes, in words: what ps, show and the live view say of its steps. Pure.
#pragma once

#include <optional>
#include <string>

#include "common/base/time.h"
#include "muster/v1/job.pb.h"

namespace muster::render {

// "12/40", "12"; "-": no step yet.
std::string step_text(const v1::Progress& progress);
// "2.1034"; "NaN": the last step's is no finite number; "-": it told none.
std::string loss_text(const v1::Progress& progress, int digits = 4);
// Since the last step of the current attempt; nothing: there is none yet, or when it was is not
// known.
std::optional<Duration> step_age(const v1::Job& job, WallTime now);
// Its ranks run, and the last step is no older than a few steps take. Not: there is no rate, and no
// time that is left.
bool is_stepping(const v1::Job& job, WallTime now);
// It was handed a checkpoint to go on from, and its first step is not behind that one's.
bool went_back(const v1::Attempt& attempt);
// What a step of the current attempt takes; 0: not known.
double step_seconds(const v1::Job& job);
// Time left, "2h05m"; "-": it cannot be told, or nothing steps.
std::string eta_text(const v1::Job& job, WallTime now);

}  // namespace muster::render
