// Checks runtime.image and runtime.mounts: names and paths. Pure.
//
// It is a part of complete(), because nothing has checked a spec of the API before.
#pragma once

#include "common/spec/complete_patch.h"

namespace muster::spec {

void check_container(const v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
