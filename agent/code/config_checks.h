// config_refusal() checks that a configuration of the job does not contain what it must not
// (common/engine/mindformers/config_checks.h). It keeps no state. It blocks, and may run on any
// thread, with the rights that the caller has taken.
//
// It reads the file on this node. For what the file does not set, it reads the files that
// `base_config` names, by MindFormers' rules (mindformers/tools/register/config.py). Later files
// override earlier ones, a top-level key is replaced as a whole, and the file's own keys override
// all.
#pragma once

#include <optional>
#include <string>

#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Returns the sentence that refuses the start. Empty result: the file is correct, or it cannot be
// read, which the engine itself will report.
//
// A refused value whose path cannot be parsed (common/compat/patch/path.h) is ignored.
std::optional<std::string> config_refusal(const v1::NeededFile& file);

}  // namespace muster::agent
