// Notes about a valid spec that may not mean what it seems to mean, or that names files which are
// not on this machine. One stateless function that reads files. One thread.
//
// `run`, `plan` and `validate` all print these notes, and none of them refuses the spec. A file may
// be here and not on the nodes, or the reverse.
#pragma once

#include <string>
#include <vector>

#include "muster/v1/spec.pb.h"

namespace muster::client {

// Returns a sentence for each note, with its key or file in front.
std::vector<std::string> spec_notes(const v1::JobSpec& spec);

}  // namespace muster::client
