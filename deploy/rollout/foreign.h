// Agents of another cluster: the credentials on the host are of another one than that of the
// controller in hosts.yaml. To take over its agents would take down a cluster that runs, as where
// `controller:` names the wrong host. Stateless; credentials_cluster() blocks.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "deploy/rollout/survey.h"

namespace muster::rollout {

// `cluster` is the controller's, as HostCheck has it. Empty: the agent is not of another one.
// Otherwise a sentence for people.
std::string why_foreign(const Surveyed& agent, const std::optional<std::string>& cluster);
// Such an agent gets a finding that stops it.
void mark_foreign(Surveyed& agent, const std::optional<std::string>& cluster);
// All agents, by what the check of the controller's host says. Where no controller has been yet,
// the controller is stopped, too: it would be one more cluster, and the wrong one.
void mark_foreign(std::vector<Surveyed>& surveyed);

// The cluster of the agent's credentials on the host. Empty: there are none that can be read.
Result<std::string> credentials_cluster(Host& host, const Places& places);

}  // namespace muster::rollout
