// Describes what code.patches do, as far as the spec alone shows, for `muster plan`. Pure.
#pragma once

#include <string>
#include <vector>

#include "client/render/style.h"
#include "muster/v1/spec.pb.h"

namespace muster::client {

// Returns the path of the code copy on every node, then a line for each patch and for each of its
// files. It also lists what in the job still names the code without the patches. Returns an empty
// text if the code is used in place.
std::vector<std::string> code_warnings(const v1::JobSpec& spec);
std::string code_patches_text(const v1::JobSpec& spec, const render::Style& style);

}  // namespace muster::client
