// Shows what launch.patch and launch.vars do to files that are on this machine, for `muster plan`.
// Stateless functions that read files. One thread.
#pragma once

#include <string>
#include <vector>

#include "client/render/style.h"
#include "muster/v1/job_service.pb.h"

namespace muster::client {

// Returns for each file one of these: a difference (in the form of the copy, without comments),
// what is wrong with a change, or a note that the file is only on the nodes. Values are those of
// the first shown
// node. Returns an empty text if nothing is changed.
std::vector<std::string> patch_warnings(const v1::PlanJobResponse& plan);
std::string patches_text(const v1::PlanJobResponse& plan, const render::Style& style);

}  // namespace muster::client
