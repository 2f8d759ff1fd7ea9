// Brings a cluster up: the controller first, then the agents, all at once. Blocking, one caller;
// uses the threads of survey.h. Repeatable: what is there already is left as it is.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "deploy/hosts/hosts.h"
#include "deploy/rollout/programs.h"
#include "deploy/rollout/survey.h"

namespace muster::rollout {

// How it went with one daemon.
struct Outcome {
  std::string name, host;
  bool good = false;
  bool changed = false;  // good: something was done
  std::string text;      // not good: why; good: what a person should know
};

struct UpRequest {
  const hosts::HostsFile& file;
  const Programs& programs;
  const Crew& crew;
  std::chrono::seconds register_time{60};  // for a node, after its agent was started
  bool prune = false;                      // remove nodes that the file no longer names
  bool new_ca = false;                     // of new_ca.h
};

// An error: the controller could not be brought up, and no agent was changed. Conflict: another one
// deploys, another hosts.yaml with another cluster's name has its controller there, or the
// controller that runs there has another state directory.
Result<std::vector<Outcome>> run_up(const UpRequest& request, std::vector<Surveyed> surveyed);

}  // namespace muster::rollout
