// Formats the list of jobs for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "client/render/style.h"
#include "common/base/time.h"
#include "muster/v1/job.pb.h"

namespace muster::render {

// Returns the end of each id, long enough that all ends differ, with at least six characters. A job
// can be found by that end. Ids begin with the time and differ at their end.
std::vector<std::string> short_ids(const std::vector<std::string>& ids);

// The rows have the order of `jobs`. With `width` 0 nothing is cut; otherwise long names are cut
// before any number. `wide` adds whole ids and all other known columns.
std::string jobs_text(const std::vector<v1::Job>& jobs, bool wide, const Style& style,
                      std::size_t width, WallTime now);

}  // namespace muster::render
