// A checkpoint in a store that has lists of its files (common/store/sums.h). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/engine/model/layout.h"
#include "common/store/contents.h"
#include "common/store/manifest.h"
#include "common/store/sums.h"

namespace muster::agent {

// Nullptr: there is none of this name.
const store::Object* find_object(const store::Manifest& manifest, std::string_view name);

// Leaves those of `sums`, and the marks of the layout. Conflict: one of `sums` is not there.
Result<void> keep_step(store::Manifest& manifest, const store::Sums& sums,
                       const engine::CheckpointLayout& layout);

// The name of the first object that is not what `sums` say. Empty: there is none.
std::string first_damaged(const store::Contents& contents, const store::Sums& sums);

}  // namespace muster::agent
