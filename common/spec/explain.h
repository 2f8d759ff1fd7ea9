// Formats the key table for people: `muster explain KEY`. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::spec {

// Returns every key, in the order of docs/job-spec.md.
std::vector<std::string_view> known_keys();

// Returns a few lines about one key. For a section there is one line for each key below it; "" is
// the top level. Errors: an unknown key, with the nearest known one.
Result<std::string> explain(std::string_view key);

}  // namespace muster::spec
