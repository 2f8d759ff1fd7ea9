// Finds the value at a path of a configuration. Pure.
#pragma once

#include <span>

#include "common/compat/patch/document.h"
#include "common/compat/patch/path.h"

namespace muster::patch {

// Follows aliases and merges ('<<'). Null: there is no value. A path with a step that is no key
// finds nothing.
const Node* value_at(const Document& document, std::span<const Step> steps);

}  // namespace muster::patch
