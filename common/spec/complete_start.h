// start and inputs: the forms of what they name, and what they mean beside the rest. Which jobs and
// stages are meant is the controller's to say. Pure.
#pragma once

#include "common/spec/complete_patch.h"

namespace muster::spec {

inline constexpr int kInputsMost = 64;

void complete_start(v1::JobSpec& spec, const SayProblem& problem);
void check_inputs(const v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
