// The words of the scenario language; tests/scenarios/README.md lists them for readers.
#pragma once

#include "tests/scenarios/script.h"
#include "tests/scenarios/world.h"

namespace muster::scenarios {

// Runs one command; what it shows goes to the world's trace. Throws std::runtime_error: the command
// makes no sense.
void run_command(World& world, const Command& command);

}  // namespace muster::scenarios
