// Asks the controller for a token, for nodes or for a user, and gives it to the person: in a file
// of mode 0600, or on standard output. Stateless; one thread.
//
// The token is a secret. It is never an argument of a command line, where every user of the machine
// sees it.
#pragma once

#include <string>

#include "client/commands/call/context.h"
#include "muster/v1/certificate_service.pb.h"

namespace muster::client {

// `file` empty: standard output. Conflict if the file is there already; then no token is made.
Result<int> make_token(const Context& context, const v1::CreateTokenRequest& request,
                       const std::string& file);

}  // namespace muster::client
