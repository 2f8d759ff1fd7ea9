// What a configuration of the job's must not say (common/engine/config_checks.h), looked up in the
// file that is on this node and, where it is silent, in those that its `base_config` names, as
// MindFormers reads them (mindformers/tools/register/config.py: later ones over earlier ones, a
// top-level key whole, the file's own keys over all). Blocking; any thread; with the rights that
// the caller has taken.
#pragma once

#include <optional>
#include <string>

#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// The sentence that refuses the start. Nothing: all is well, or the file cannot be read, which the
// engine itself will say. `file` has no path of a copy; of its items the first names the spec's
// key, and every other one is a place with the value that it must not have and why: "false:
// BECAUSE".
std::optional<std::string> config_refusal(const v1::PatchedFile& file);

}  // namespace muster::agent
