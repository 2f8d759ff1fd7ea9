// What of a job decides which nodes could ever hold it, as a key. Pure.
#pragma once

#include <string>

#include "muster/v1/job.pb.h"
#include "muster/v1/spec.pb.h"

namespace muster::core {

// The part of a job that decides which nodes could ever hold the job. Equal requirements
// give equal texts.
std::string requirements_of(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved = {});

}  // namespace muster::core
