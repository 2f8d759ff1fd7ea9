// Checks whether the names in schedule can be jobs. Pure.
//
// Only the controller knows which jobs they are, and in which phase.
#pragma once

#include <functional>
#include <string>

#include "muster/v1/spec.pb.h"

namespace muster::spec {

inline constexpr int kAfterMost = 64;  // jobs that one job may wait for

// Removes an empty schedule, so that such a spec equals one without a schedule.
void complete_schedule(v1::JobSpec& spec,
                       const std::function<void(std::string key, std::string message)>& problem);

}  // namespace muster::spec
