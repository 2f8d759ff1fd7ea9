// Checks spec.stage: a job's description of itself as one stage of a chain. Pure.
//
// It is a part of complete(). Code that has the whole chain (stages.h, the controller's API) checks
// whether the named stages exist.
#pragma once

#include "common/spec/complete_patch.h"

namespace muster::spec {

inline constexpr std::uint32_t kStagesMost = 32;

// Checks that the job's name is CHAIN.STAGE. If the spec has no `success`, `creates` becomes the
// job's success.
void complete_stage(v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
