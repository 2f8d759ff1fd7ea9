// What stands at a place of a configuration. Pure.
#pragma once

#include <span>

#include "common/patch/document.h"
#include "common/patch/path.h"

namespace muster::patch {

// Through aliases and merges ('<<'). Null: nothing is there. A step that is no key finds nothing.
const Node* value_at(const Document& document, std::span<const Step> steps);

}  // namespace muster::patch
