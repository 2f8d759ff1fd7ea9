// Where a launch finds the code: code.at, or with code.patches each node's copy of it, whose place
// a template tells. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/engine/rows.h"

namespace muster::engine {

// The last part of code.at, which a copy keeps; "code" where it has none ("/", "..").
std::string code_name(const v1::JobSpec& spec);

// The directory of the code as a template of a rank.
std::string code_template(const v1::JobSpec& spec);

// NodeLaunch.code, where the spec has patches.
void add_code_copy(v1::NodeLaunch& launch, const LaunchRequest& request, std::size_t node);

}  // namespace muster::engine
