// The list of jobs as people see it. Values.
#pragma once

#include <string>
#include <vector>

#include "client/render/style.h"
#include "common/base/time.h"
#include "muster/v1/job.pb.h"

namespace muster::render {

// Of each id so much of its end that no two are alike, at least six characters: a job is found by
// it. Ids begin with the time, and differ at their end.
std::vector<std::string> short_ids(const std::vector<std::string>& ids);

// In the order of `jobs`. `width` 0: nothing is cut; else long names give way before a figure does.
// `wide`: whole ids, and what else is known.
std::string jobs_text(const std::vector<v1::Job>& jobs, bool wide, const Style& style,
                      std::size_t width, WallTime now);

}  // namespace muster::render
