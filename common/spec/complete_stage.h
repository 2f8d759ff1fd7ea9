// spec.stage: what a job says of itself as one stage of a chain. Part of complete(). Whether the
// stages that it names are there is told where the whole chain is (stages.h, the controller's API).
// Pure.
#pragma once

#include "common/spec/complete_patch.h"

namespace muster::spec {

inline constexpr std::uint32_t kStagesMost = 32;

// The job's name is CHAIN.STAGE. `creates` makes the job's success where the spec says none.
void complete_stage(v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
