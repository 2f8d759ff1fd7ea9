// The verbs about certificates that were issued: muster cert ls | revoke. Stateless; one thread.
#pragma once

#include <CLI/CLI.hpp>

#include "client/commands/call/context.h"

namespace muster::client {

void add_issued_verbs(CLI::App& cert, Context& context, int& exit);

}  // namespace muster::client
