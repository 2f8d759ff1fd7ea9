// schedule: whether what is named there can be jobs. Which jobs they are, and how they stand, is
// the controller's to say.
#pragma once

#include <functional>
#include <string>

#include "muster/v1/spec.pb.h"

namespace muster::spec {

inline constexpr int kAfterMost = 64;  // jobs that one may wait for

// A schedule that says nothing goes: such a spec is the same as one without it.
void complete_schedule(v1::JobSpec& spec,
                       const std::function<void(std::string key, std::string message)>& problem);

}  // namespace muster::spec
