// Engine command: any program. It adds nothing to the neutral MUSTER_* variables, which every
// engine's ranks have (plan.cc).
#include "common/engine/command/command.h"

namespace muster::engine {

void launch_command(Launching&) {}

}  // namespace muster::engine
