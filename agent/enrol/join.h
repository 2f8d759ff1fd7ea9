// Joins the cluster: a node that has no credentials yet gets them from the controller's enrolment
// port, with a token. It blocks, on main()'s thread, before the agent's loop starts.
#pragma once

#include <filesystem>
#include <string>

#include "agent/enrol/cancel.h"
#include "common/base/error.h"
#include "common/base/time.h"

namespace muster::agent {

struct JoinOptions {
  std::string enrol;                  // HOST:PORT of the enrolment port
  std::filesystem::path token;        // a file, or "-" for standard input
  std::filesystem::path credentials;  // where to write what it gets
  std::filesystem::path pending_key;  // (pending_key.h)
  std::string node;
  Duration retry_min = std::chrono::seconds(1), retry_max = std::chrono::seconds(30);
};

// Tries until it has written the credentials, durably and with mode 0600, and then returns true.
// False: cancelled. Each reason to try again has one line in the log. Errors are those that another
// try does not change: of the token file, of the disk, another end that is not the controller
// (Unsupported), and the refusals of the controller (NotAllowed).
Result<bool> join_cluster(const JoinOptions& options, const Clock& clock, const Cancel& cancel);

}  // namespace muster::agent
