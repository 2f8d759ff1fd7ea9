// Opens a TCP connection to a host by name, with a deadline. Stateless; blocking; may run a program
// to look up the name (common/name_service), so it never runs on a loop.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "deploy/ssh/deadline.h"
#include "deploy/ssh/ssh_config.h"

namespace muster::ssh {

// Returns a socket that does not block, and that fails (ETIMEDOUT, or why there is no route) when
// the host is silent for longer than `alive` says, also while nothing is sent. It tries the
// addresses in their order, each for its share of the time. Errors are reasons without a context:
// NotFound ("it does not resolve"); Unreachable ("10.0.0.1 port 22: Connection refused; is sshd
// running there?"); TimedOut.
Result<io::UniqueFd> connect_tcp(const std::string& host, std::uint16_t port, Deadline deadline,
                                 const Alive& alive = {});

}  // namespace muster::ssh
