// Checks start and inputs: the forms of their values, and how they fit the rest of the spec. Pure.
//
// Only the controller knows which jobs and stages are meant.
#pragma once

#include "common/spec/complete_patch.h"

namespace muster::spec {

inline constexpr int kInputsMost = 64;

void complete_start(v1::JobSpec& spec, const SayProblem& problem);
void check_inputs(const v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
