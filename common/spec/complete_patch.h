// launch.patch, launch.vars and what resume says over them: bounds, places, names. Part of
// complete(): a spec of the API was looked at by nobody before. Pure.
#pragma once

#include <functional>
#include <string>

#include "muster/v1/spec.pb.h"

namespace muster::spec {

using SayProblem = std::function<void(std::string key, std::string message)>;

void check_patches(const v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
