// The NVIDIA devices of this node from nvidia-smi. As ascend.h: `ask` is the only way out.
#pragma once

#include "agent/probe/ask.h"

namespace muster::agent::probe {

Found ask_nvidia(const Ask& ask);

}  // namespace muster::agent::probe
