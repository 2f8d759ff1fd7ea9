// A checkpoint in a store that has lists of its files (common/store/sums.h). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/store/contents.h"
#include "common/store/manifest.h"

namespace muster::agent {

// What lists say: by a name its SHA-256. With disks of their own, nodes may have uploaded different
// files of one name; then it may have any of theirs.
using StepSums = std::map<std::string, std::set<std::string>>;

// Nullptr: there is none of this name.
const store::Object* find_object(const store::Manifest& manifest, std::string_view name);

// Adds what the list says. `sha256`: of the text, one of `expected` if there are any. DataLoss: it
// is another one, or none.
Result<void> take_sums(std::string_view text, const std::string& sha256,
                       const std::set<std::string>& expected, StepSums& all);

// Leaves those of `sums`. Conflict: one of `sums` is not there.
Result<void> keep_step(store::Manifest& manifest, const StepSums& sums);

// The name of the first object that is not what `sums` say. Empty: there is none.
std::string first_damaged(const store::Contents& contents, const StepSums& sums);

// The engine's mark in the save directory that this step is whole, as the row of checkpoints has
// it: text by name. The one in the store may be of another step. Empty: the row has none.
Result<std::map<std::string, std::string>> marks_of_step(const std::string& layout,
                                                         std::int64_t step);

}  // namespace muster::agent
