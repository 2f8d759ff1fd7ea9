// Says who may call which method over TCP, by one table. Pure; any thread.
//
// Callers over the unix socket are the user who runs the controller, and may call everything. A
// method that the table does not list does not exist over TCP. A test compares the table with the
// services' descriptors.
//
// The first columns are known when a call's headers arrive, and the port checks them. The last two
// need the owner of the job that the request names: the services ask JobAccess for it (access.h),
// and a test calls each such method for another user's job. A node speaks only for itself
// (common/rpc/tls_port.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/error.h"
#include "common/pki/identity.h"
#include "controller/access/user_role.h"

namespace muster::controller {

// Whose calls a method accepts. `Owner`: only the unix socket.
enum class CallerRole : std::uint8_t { Owner, Node, User, NodeOrUser };

// What a caller gets who does not have the right to a job. Less: an answer that leaves it out, or
// shows less of it (controller/api/withhold.h).
enum class Without : std::uint8_t { Refused, Less };

struct CallRule {
  std::string_view method;  // "/muster.v1.JobService/GetJob"
  CallerRole caller;
  UserRole least = UserRole::Viewer;  // of users
  JobRight right = JobRight::None;    // that other users' jobs need
  Without without = Without::Refused;
};
std::span<const CallRule> call_rules();
const CallRule* find_rule(std::string_view method);  // nullptr: there is no such method

// NotAllowed, with a sentence, if this caller may not. Unsupported for a method that is not in the
// table: it is of another release. `role`: of a user.
Result<void> may_call(const pki::Identity& caller, UserRole role, std::string_view method);

}  // namespace muster::controller
