// What the file of launch.config must not say: found nowhere but in it, so each node's agent looks
// before anything starts. Pure.
//
//   mindformers   runner_config.sink_mode: without it MindFormers does not load the ranks' parts of
//                 a checkpoint ("When distributed loads are sliced weights, sink_mode must be set
//                 True"), and the job could never go on from one.
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
  std::string at;       // dotted
  bool refused{};       // the value that it must not have; none at all is well
  std::string because;  // and what helps
};
std::vector<ConfigCheck> config_checks(const v1::JobSpec& spec);

// "false: BECAUSE", as it travels behind the place (v1::PatchedFile without a path).
std::string check_text(const ConfigCheck& check);

// Whether the scalar is this truth value, as YAML 1.1 and MindFormers' own arguments write one.
bool says(std::string_view scalar, bool value);

}  // namespace muster::engine
