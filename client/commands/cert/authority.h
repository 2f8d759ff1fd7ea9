// The verbs about the cluster's CA: muster cert ca | rotate | import. Stateless; one thread.
#pragma once

#include <CLI/CLI.hpp>

#include "client/commands/call/context.h"

namespace muster::client {

void add_authority_verbs(CLI::App& cert, Context& context, int& exit);

}  // namespace muster::client
