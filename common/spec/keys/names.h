// Checks names in a spec: of a job, a stage, an input, a variable. Pure.
// That of a node is common/base/names.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::spec {

inline constexpr std::size_t kJobNameMax = 63;
// The input that a URL of a store in start.from becomes.
inline constexpr std::string_view kStartInput = "start";

bool is_job_name(std::string_view text);
// Returns what is wrong with a job's name, or an empty text.
std::string job_name_problem(std::string_view text);
bool is_stage_name(std::string_view text);
bool is_input_name(std::string_view text);
bool is_variable_name(std::string_view text);
// True if the text can be a job's name, a whole id, or the beginning of one, which all have the
// same characters. "@last" is accepted, too.
bool may_be_job(std::string_view text);

// True if a part of the path is "..": such a path leads to another place than its name shows.
bool climbs(std::string_view path);

// Splits "stage:S/below" and "job:J/below": `kind` is "stage" or "job", and `below` has no slash in
// front. Anything else is a path; then `kind` is empty.
struct Source {
  std::string_view kind, name, below;
  bool slash = false;  // a slash follows the name
};
Source source_of(std::string_view text);

}  // namespace muster::spec
