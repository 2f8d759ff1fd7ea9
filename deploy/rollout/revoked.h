// Finds nodes whose certificate on the host was revoked: the controller refuses it, though it looks
// valid there. Stateless; read_revoked() blocks.
#pragma once

#include <map>
#include <string>

#include "common/base/error.h"
#include "deploy/rollout/controller_host.h"
#include "deploy/rollout/survey.h"

namespace muster::rollout {

// SHA-256 of a node's public key, in hex -> why it was revoked.
using RevokedKeys = std::map<std::string, std::string>;

Result<RevokedKeys> read_revoked(ControllerHost& controller);
// Where the agent's key was revoked: adds a note, and the steps to new credentials, because
// hosts.yaml names the node.
void mark_revoked(Surveyed& agent, const RevokedKeys& revoked);

}  // namespace muster::rollout
