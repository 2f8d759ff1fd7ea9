// What an engine begins with that this job did not make: spec.start, ${inputs.X}, ${stages.S.out}.
// What their texts may be is common/spec's matter (complete_start.h), what they stand for the
// controller's (controller/api). Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/engine/rows.h"

namespace muster::engine {

bool has_start(const v1::JobSpec& spec);
// As weights: the attempt that begins with it is a first start. Else it goes on from it.
bool starts_as_weights(const v1::JobSpec& spec);
// From "job:J" or "stage:S": from one of the checkpoints of that job, and not from a directory that
// the spec names.
bool starts_from_job(const v1::JobSpec& spec);
// The spec says itself where ${start.dir} goes: on the command line, in a variable, in a changed
// copy.
bool names_start_dir(const v1::JobSpec& spec);

// Where an argument comes from by which spec.start's checkpoint is loaded.
inline constexpr const char* kStartSource = "start.from";
inline const char* resume_word(const LaunchRequest& request, const char* engine) {
  return request.resume_from_start ? kStartSource : engine;
}

// Whether the job can begin with what start gives it, whatever that turns out to be.
void check_start(const v1::JobSpec& spec, Problems& problems);

// Of ${inputs.X} and ${stages.S.out} what stands behind the first dot.
Result<std::string> input_value(const LaunchRequest& request, std::string_view input);
Result<std::string> stage_value(const LaunchRequest& request, std::string_view stage);
Result<std::string> start_value(const LaunchRequest& request);

}  // namespace muster::engine
