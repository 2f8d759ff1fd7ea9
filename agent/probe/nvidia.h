// Finds the NVIDIA devices of this node with nvidia-smi. Pure: all I/O goes through `ask`, as in
// ascend.h.
#pragma once

#include "agent/probe/ask.h"

namespace muster::agent::probe {

Found ask_nvidia(const Ask& ask);

}  // namespace muster::agent::probe
