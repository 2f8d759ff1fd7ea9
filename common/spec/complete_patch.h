// Checks launch.patch and launch.vars, and the keys of resume that change them: bounds, paths,
// names. Pure.
//
// It is a part of complete(), because nothing has checked a spec of the API before.
#pragma once

#include <functional>
#include <string>

#include "muster/v1/spec.pb.h"

namespace muster::spec {

using SayProblem = std::function<void(std::string key, std::string message)>;

void check_patches(const v1::JobSpec& spec, const SayProblem& problem);

}  // namespace muster::spec
