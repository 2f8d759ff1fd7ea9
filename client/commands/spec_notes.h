// What a sound spec may not mean as it stands, and what of it is not on this machine: said by
// `run`, `plan` and `validate` alike, and refused by none. Reads files, which may lie here and not
// on the nodes, or the other way round.
#pragma once

#include <string>
#include <vector>

#include "muster/v1/spec.pb.h"

namespace muster::client {

// A sentence each, with its key or file in front.
std::vector<std::string> spec_notes(const v1::JobSpec& spec);

}  // namespace muster::client
