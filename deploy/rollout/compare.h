// Compares a survey with what the controller's host knows of the deployment. For `plan`: it changes
// nothing there, and takes no lock. Blocking.
#pragma once

#include <string>
#include <vector>

#include "deploy/rollout/survey.h"
#include "deploy/rollout/up.h"

namespace muster::rollout {

struct Comparison {
  std::vector<Outcome> left;  // left_over()
  std::string trouble;        // why it is not whole; empty: it is
};

// `cluster` is the name in hosts.yaml. Uses the session to the controller's host up. Hosts get what
// the deployment says of them: findings, as of a revoked certificate, and steps.
Comparison compare(std::vector<Surveyed>& surveyed, const std::string& cluster);

}  // namespace muster::rollout
