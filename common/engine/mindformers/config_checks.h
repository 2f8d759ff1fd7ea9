// Values that the file of launch.config must not have. Pure.
//
// Only the file itself contains these values, so each node's agent checks the file before anything
// starts.
//
//   mindformers   runner_config.sink_mode: without it MindFormers does not load the ranks' parts of
//                 a checkpoint ("When distributed loads are sliced weights, sink_mode must be set
//                 True"), and the job could never resume from one.
//
// Source: mindspore-lab/mindformers mindformers/trainer/utils.py (load_distributed_checkpoint),
// r0.6 to master.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/spec.pb.h"

namespace muster::engine {

struct ConfigCheck {
  std::string at;       // path of the value, with dots
  bool refused{};       // the refused value; a missing value is accepted
  std::string because;  // and what would help
};
std::vector<ConfigCheck> config_checks(const v1::JobSpec& spec);

// "false: BECAUSE". An order carries this text after the path of the value (v1::PatchedFile without
// a path).
std::string check_text(const ConfigCheck& check);

// Whether the scalar is this truth value, in the spellings of YAML 1.1 and of MindFormers' own
// arguments.
bool says(std::string_view scalar, bool value);

}  // namespace muster::engine
