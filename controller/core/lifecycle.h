// Makes docs/lifecycle.md from kJobMoves. Pure.
//
// tests/unit/controller_core compares the two. With MUSTER_REWRITE=1 in its environment, the test
// writes the page anew.
#pragma once

#include <string>

namespace muster::core {

std::string lifecycle_page();

}  // namespace muster::core
