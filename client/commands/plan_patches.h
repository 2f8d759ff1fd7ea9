// What launch.patch and launch.vars do to files, as far as these are on this machine: for `muster
// plan`.
#pragma once

#include <string>
#include <vector>

#include "client/render/style.h"
#include "muster/v1/job_service.pb.h"

namespace muster::client {

// A difference a file (as a copy is written: without comments), what is wrong with a change, or
// that the file is on the nodes alone; values are those of the first of the nodes that are shown.
// Empty: nothing is changed.
std::vector<std::string> patch_warnings(const v1::PlanJobResponse& plan);
std::string patches_text(const v1::PlanJobResponse& plan, const render::Style& style);

}  // namespace muster::client
