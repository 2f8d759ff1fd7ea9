// Says in a report which certificate the agent has, and whom it trusts. Stateless; any thread.
#pragma once

#include "common/pki/credentials.h"
#include "muster/v1/node.pb.h"

namespace muster::agent {

void report_credentials(const pki::Credentials& own, v1::HostReading& host);

}  // namespace muster::agent
