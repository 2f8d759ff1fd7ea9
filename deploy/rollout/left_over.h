// Nodes that were deployed and are no longer in hosts.yaml: names them, and removes them.
// Stateless; prune() blocks, and uses the threads of survey.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "deploy/rollout/controller_host.h"
#include "deploy/rollout/manifest.h"
#include "deploy/rollout/survey.h"
#include "deploy/rollout/up.h"

namespace muster::rollout {

// Rows for people, in the order of the names. They are good: nothing was asked of them.
std::vector<Outcome> left_over(const Manifest& manifest, const std::vector<Surveyed>& wanted);

// The wanted agent that has the place of `left` on its host, under another name: who stops and
// removes the one does so with the other. Null: there is none.
const Surveyed* successor(const Deployed& left, const std::vector<Surveyed>& wanted);

// An agent that would take the place of a node of another name, while jobs use that node, gets a
// finding that stops it: the ranks of those jobs would be lost.
void mark_renamed(std::vector<Surveyed>& wanted, const Manifest& manifest, const Nodes& nodes);

// With this reason `prune` drains the nodes while it works. `up` takes such drains back.
inline constexpr std::string_view kPruneDrains = "muster deploy up --prune";

// Stops and removes them, as `down` does, and takes them out of the cluster: their certificates
// are revoked, and the controller forgets the nodes. Each that is gone leaves the manifest, which
// the caller writes. One on which a job runs stays. A host that does not answer is forgotten: with
// a revoked certificate its agent can do nothing here. Where there is a successor, nothing on the
// host is touched.
std::vector<Outcome> prune(const std::vector<Outcome>& left, ControllerHost& controller,
                           const std::vector<Surveyed>& wanted, Manifest& manifest,
                           const Crew& crew);

}  // namespace muster::rollout
