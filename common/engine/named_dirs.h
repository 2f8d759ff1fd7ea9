// The directories that a job's own command line names, where muster starts its ranks and saves
// elsewhere. Pure.
#pragma once

#include <string>

#include "muster/v1/spec.pb.h"

namespace muster::engine {

struct NamedDirs {
  std::string save, load;  // absolute; empty: none, or one with a template or a dollar in it
};
// Of engines that take Megatron's arguments; of a node's script nothing, whose launcher tells it
// (launch.per: node).
NamedDirs named_dirs(const v1::JobSpec& spec);

}  // namespace muster::engine
