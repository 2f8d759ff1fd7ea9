// What may be a name in a spec: of a job, a stage, an input, a variable. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::spec {

inline constexpr std::size_t kJobNameMax = 63;

bool is_job_name(std::string_view text);
// What is wrong with a job's name; empty: nothing.
std::string job_name_problem(std::string_view text);
bool is_stage_name(std::string_view text);
bool is_input_name(std::string_view text);
bool is_variable_name(std::string_view text);
// A job's name, a whole id, or the beginning of one: letters and digits are in all of them; or
// @last.
bool may_be_job(std::string_view text);

// A path with a part that is "..": it would be another one than its name says.
bool climbs(std::string_view path);

// "stage:S/below" and "job:J/below": `kind` is "stage" or "job", `below` has no slash in front.
// Anything else is a path: `kind` is empty.
struct Source {
  std::string_view kind, name, below;
  bool slash = false;  // there is one behind the name
};
Source source_of(std::string_view text);

}  // namespace muster::spec
