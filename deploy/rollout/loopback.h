// A controller that listens at its own host's loopback address alone, and agents on other hosts,
// which cannot reach it. Pure.
#pragma once

#include <vector>

#include "deploy/rollout/survey.h"

namespace muster::rollout {

// Then the controller gets a finding that stops it: one that runs would cut all of them off.
void mark_loopback(std::vector<Surveyed>& surveyed);

}  // namespace muster::rollout
