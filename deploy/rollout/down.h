// Takes a cluster down: stops and removes what the manifest names, the agents first, the controller
// last. Blocking, one caller; uses the threads of survey.h. Repeatable: a host that could not be
// reached stays in the manifest, and the controller stays with it, unless `force` forgets the host.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "deploy/hosts/hosts.h"
#include "deploy/rollout/manifest.h"
#include "deploy/rollout/survey.h"
#include "deploy/rollout/up.h"

namespace muster::rollout {

struct DownRequest {
  const hosts::HostsFile& file;
  const Crew& crew;
  bool force = false;    // cancel the jobs that run, and forget hosts that do not answer
  bool purge = false;    // remove state and logs, too
  bool outputs = false;  // with `purge`: also what jobs have written below the state directory
};

// With this reason `down` drains the nodes while it works. `up` takes such drains back.
inline constexpr std::string_view kDownDrains = "muster deploy down";

// They have the same programs.
bool same_prefix(const Deployed& a, const Deployed& b);

struct Removal {
  bool programs = false;     // nothing else of muster is below the prefix
  bool purge = false;        // the state directory and the logs, too
  bool end_jobs = false;     // with `purge`: kill what is left of jobs there; else that is an error
  bool forget = false;       // a host that does not answer counts as done
  bool outputs = false;      // with `purge`: also what jobs have written below `outputs_root`
  std::string outputs_root;  // as RoleRemoval's (actions.h)
  std::string cluster;       // an agent of another one is left as it is; empty: it is not known
};
// Stops the agent and removes what `up` put there. One of another cluster is good, and not changed.
Outcome remove_agent(const std::string& name, const Deployed& deployed, const Removal& removal,
                     const Crew& crew);

// No outcome: nothing is deployed there. Errors: Conflict (jobs run, or another one deploys), and
// what keeps the controller's host from being reached.
Result<std::vector<Outcome>> take_down(const DownRequest& request);

}  // namespace muster::rollout
