// Under a list that looks as always: the controller pauses, and nothing of what is listed goes on
// to its next phase. One thread.
#pragma once

#include "client/commands/context.h"

namespace muster::client {

// A line on standard error where the controller says so; nothing where it does not, or does not
// answer at once.
void warn_of_pause(const Context& context);

}  // namespace muster::client
