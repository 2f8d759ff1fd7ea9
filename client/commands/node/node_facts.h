// muster node drain | undrain | label | rm: what an operator says of a node. One thread.
#pragma once

#include <CLI/CLI.hpp>

#include "client/commands/call/context.h"

namespace muster::client {

// Adds the verbs to `muster node`.
void add_node_facts(CLI::App& node, Context& context, int& exit);

}  // namespace muster::client
