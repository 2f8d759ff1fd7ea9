// Any program: nothing but the neutral MUSTER_* variables, which every engine's ranks have
// (plan.cc).
#include "common/engine/rows.h"

namespace muster::engine {

void launch_command(Launching&) {}

}  // namespace muster::engine
