// docs/lifecycle.md, made from kJobMoves. tests/unit/controller_core compares the two; with
// MUSTER_REWRITE=1 in its environment it writes the page anew.
#pragma once

#include <string>

namespace muster::core {

std::string lifecycle_page();

}  // namespace muster::core
