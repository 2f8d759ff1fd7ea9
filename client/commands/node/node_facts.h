// muster node drain | undrain | label | rm | rename: what an operator says of a node. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "client/commands/call/context.h"

namespace muster::client {

// Makes a token with which a machine takes this node's name, in a new file.
using MakeNodeToken =
    std::function<Result<int>(const Context& context, const std::string& node,
                              const std::string& file, const std::string& lifetime)>;

// Adds the verbs to `muster node`.
void add_node_facts(CLI::App& node, Context& context, int& exit, MakeNodeToken make_token);

}  // namespace muster::client
