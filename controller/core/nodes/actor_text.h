// Who set a fact of a node (NodeDrained and its kin), for people. Pure.
#pragma once

#include <string>

namespace muster::core {

// Empty, in journals of earlier releases: the user who runs the controller.
inline std::string actor_text(const std::string& actor) { return actor.empty() ? "owner" : actor; }

}  // namespace muster::core
