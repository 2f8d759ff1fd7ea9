// Says who may call which method over TCP, by one table. Pure; any thread.
//
// Callers over the unix socket are the user who runs the controller, and may call everything. A
// method that the table does not list does not exist over TCP. A test compares the table with the
// services' descriptors.
//
// The table knows roles. What a caller may name in a request is checked where the request is
// handled: a node speaks only for itself (common/rpc/tls_port.h).
#pragma once

#include <span>
#include <string_view>

#include "common/base/error.h"
#include "common/pki/identity.h"

namespace muster::controller {

// Whose calls a method accepts. `Owner`: only the unix socket.
enum class CallerRole { Owner, Node, User, NodeOrUser };

struct CallRule {
  std::string_view method;  // "/muster.v1.JobService/GetJob"
  CallerRole role;
};
std::span<const CallRule> call_rules();

// NotAllowed, with a sentence, if this caller may not. Unsupported for a method that is not in the
// table: it is of another release.
Result<void> may_call(const pki::Identity& caller, std::string_view method);

}  // namespace muster::controller
