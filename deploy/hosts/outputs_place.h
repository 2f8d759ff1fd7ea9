// Whether outputs of jobs lie where `muster deploy down --purge` removes a state directory. Pure.
#pragma once

#include <string>

#include "deploy/hosts/hosts.h"

namespace muster::hosts {

// A sentence where the outputs' root is a state directory of the file or below one; only the
// controller's own STATE_DIR/outputs may be, which a purge knows. Empty: all is well.
std::string why_no_outputs_place(const HostsFile& file);

}  // namespace muster::hosts
