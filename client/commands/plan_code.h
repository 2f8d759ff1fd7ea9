// What code.patches do, as far as the spec alone tells: for `muster plan`.
#pragma once

#include <string>
#include <vector>

#include "client/render/style.h"
#include "muster/v1/spec.pb.h"

namespace muster::client {

// Where the code is copied to on every node, then a line a patch and one a file of it, and what of
// the job still names the code without the patches. Empty: the code is used in place.
std::vector<std::string> code_warnings(const v1::JobSpec& spec);
std::string code_patches_text(const v1::JobSpec& spec, const render::Style& style);

}  // namespace muster::client
