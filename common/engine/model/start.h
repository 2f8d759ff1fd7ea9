// The files from outside the job that an engine begins with: spec.start, ${inputs.X},
// ${stages.S.out}. Pure.
//
// common/spec (rules/start.cc) checks the texts of these keys. The controller (controller/api)
// resolves them to paths.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/engine/model/rows.h"

namespace muster::engine {

bool has_start(const v1::JobSpec& spec);
// With start.as: weights the attempt that begins with it is a first start. Otherwise the attempt
// resumes from it.
bool starts_as_weights(const v1::JobSpec& spec);
// Whether start.from is "job:J" or "stage:S": a checkpoint of that job, and not a directory that
// the spec names.
bool starts_from_job(const v1::JobSpec& spec);
// Whether the spec itself names ${start.dir}: on the command line, in launch.cwd, in a variable, or
// in a changed copy.
bool names_start_dir(const v1::JobSpec& spec);

// Source of an argument that loads spec.start's checkpoint.
inline constexpr const char* kStartSource = "start.from";
inline const char* resume_word(const LaunchRequest& request, const char* engine) {
  return request.resume_from_start ? kStartSource : engine;
}

// Whether the job can begin with what start gives it, for every value that start may have.
void check_start(const v1::JobSpec& spec, Problems& problems);

// Where an input is. Empty: not known yet.
std::string input_path(const LaunchRequest& request, const v1::InputSpec& input);
// The values of ${inputs.X} and ${stages.S.out}; the argument is the text after the first dot.
Result<std::string> input_value(const LaunchRequest& request, std::string_view input);
Result<std::string> stage_value(const LaunchRequest& request, std::string_view stage);
Result<std::string> start_value(const LaunchRequest& request);

}  // namespace muster::engine
