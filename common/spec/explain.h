// The key table for people: `muster explain KEY`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::spec {

// Every key, in the order of docs/job-spec.md.
std::vector<std::string_view> known_keys();

// A few lines on one key; of a section, one on each key below it; of "", the top level. Errors: an
// unknown key, with the nearest known one.
Result<std::string> explain(std::string_view key);

}  // namespace muster::spec
