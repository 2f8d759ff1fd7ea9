// The save and load directories that a job's own command line names. The job names them where
// muster starts its ranks, and the ranks save elsewhere. Pure.
#pragma once

#include <string>

#include "muster/v1/spec.pb.h"

namespace muster::engine {

struct NamedDirs {
  std::string save, load;  // absolute; empty: none, or it contains a template or a dollar
};
// Only for engines that take Megatron's arguments. For a node's script the result is empty: the
// launcher in the script reports the directories (launch.per: node).
NamedDirs named_dirs(const v1::JobSpec& spec);

}  // namespace muster::engine
