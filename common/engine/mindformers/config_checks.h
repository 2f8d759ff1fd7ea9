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

#include <string_view>
#include <vector>

#include "common/engine/model/engine.h"
#include "muster/v1/spec.pb.h"

namespace muster::engine {

std::vector<RefusedValue> refused_values(const v1::JobSpec& spec);

// Whether the scalar is this truth value, in the spellings of YAML 1.1 and of MindFormers' own
// arguments.
bool says(std::string_view scalar, bool value);

}  // namespace muster::engine
