// An agent that is deployed at one place and wanted at another one: another host, user, prefix or
// state directory. Pure.
//
// The manifest is the only note of the old place. So such an agent is refused, or its old daemon
// would run on, with the node's name, and nobody would remove it.
#pragma once

#include "deploy/rollout/manifest.h"
#include "deploy/rollout/survey.h"

namespace muster::rollout {

// Where the agent is deployed at another place, it gets a finding that stops it. The same host by
// another name is no other place: the configuration that was written there shows it.
void mark_moved(Surveyed& one, const Manifest& manifest);

}  // namespace muster::rollout
