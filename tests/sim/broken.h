// Which broken variant the history of this thread plays. World sets it. Only the copy of the cores
// that tests/sim/patches changes asks for it; that copy is compiled with this file included first.
#pragma once

#include "tests/sim/mutant.h"

namespace muster::sim {

inline thread_local Mutant playing = Mutant::None;
inline bool broken(Mutant variant) { return playing == variant; }

}  // namespace muster::sim
