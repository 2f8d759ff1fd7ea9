// Warns below a list if the controller pauses: the list looks as usual, but no job in it goes to
// its next phase. One stateless function. One thread.
#pragma once

#include "client/commands/call/context.h"

namespace muster::client {

// Prints a line on standard error if the controller reports a pause. Prints nothing if there is
// none, or if the controller does not answer within 2 s.
void warn_of_pause(const Context& context);

}  // namespace muster::client
