// Says when an agent's certificate ends soon, while there is time to make a new one. Stateless; any
// thread.
#pragma once

#include <string>

#include "common/base/time.h"
#include "common/pki/credentials.h"

namespace muster::agent {

// What the agent logs in the last 7 days. Empty before them, and after the end.
std::string ends_soon(const pki::Credentials& own, WallTime now);

}  // namespace muster::agent
