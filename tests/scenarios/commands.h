// The commands of the scenario language; tests/scenarios/README.md lists them for readers. main()
// of muster-scenarios calls run_command() on its one thread.
#pragma once

#include "tests/scenarios/script.h"
#include "tests/scenarios/world.h"

namespace muster::scenarios {

// Runs one command; its output goes to the world's trace. Throws std::runtime_error if the command
// makes no sense.
void run_command(World& world, const Command& command);

}  // namespace muster::scenarios
