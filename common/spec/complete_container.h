// runtime.image and runtime.mounts: names and places. Part of complete(): a spec of the API was
// looked at by nobody before. Pure.
#pragma once

#include "common/spec/complete_patch.h"

namespace muster::spec {

void check_container(const v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
