// Finds the way to a target: its jump hosts and itself, each with what ssh_config says about it.
// Stateless; blocking (it runs `ssh -G`, 5 s at most for each host); any thread but a loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "deploy/ssh/session.h"
#include "deploy/ssh/ssh_config.h"

namespace muster::ssh {

struct Route {
  std::vector<Hop> hops;               // the target is the last one
  std::optional<std::string> program;  // the path of `ssh`, if there is one
};

// InvalidArgument: a name cannot be one. Errors of `ssh -G` have its own text: a mistake in
// ssh_config must not connect to another host than the one that is meant.
Result<Route> find_route(const Target& target, const Options& options);

}  // namespace muster::ssh
