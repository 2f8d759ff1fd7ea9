// Engine command: any program. Pure.
#pragma once

#include "common/engine/model/rows.h"

namespace muster::engine {

void launch_command(Launching& launching);

}  // namespace muster::engine
