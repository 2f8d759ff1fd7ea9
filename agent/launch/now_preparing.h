// now_preparing() is how functions deep inside a step of a start say what they do at the moment. It
// finds the start of the calling thread, which StartRunner names (start/start_runner.h). Steps
// themselves use the StartProgress of their StartWork.
#pragma once

#include <string>

#include "agent/launch/start_progress.h"

namespace muster::agent {

// From now on the calling thread works on the start of `progress`; nullptr: on none any more.
void prepare_for(StartProgress* progress);

// If the step hangs, its refusal shows this sentence. On a thread that works on no start it does
// nothing.
void now_preparing(std::string what);

}  // namespace muster::agent
