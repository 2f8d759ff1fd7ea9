// Where a launch finds the code: at code.at, or with code.patches in each node's own copy. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/engine/model/rows.h"

namespace muster::engine {

// The last part of code.at; a copy keeps this name. It is "code" where code.at has no such part
// ("/", "..").
std::string code_name(const v1::JobSpec& spec);

// The directory of the code, as a template that is expanded for each rank.
std::string code_template(const v1::JobSpec& spec);

// Sets NodeLaunch.code if the spec has patches.
void add_code_copy(v1::NodeLaunch& launch, const LaunchRequest& request, std::size_t node);

}  // namespace muster::engine
