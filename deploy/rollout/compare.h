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

// Uses the session to the controller's host up. Where a certificate was revoked, the agent gets
// that note and the steps.
Comparison compare(std::vector<Surveyed>& surveyed);

}  // namespace muster::rollout
