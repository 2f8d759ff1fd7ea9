// A private cluster on this machine: real daemons, SQLite, a unix socket of mode 0600 (or loopback TCP and a token where the path is too long for a
// socket). Starts, finds and stops them (local_daemons.h). One thread; blocks with deadlines.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "client/commands/context.h"
#include "client/commands/local_daemons.h"
#include "common/base/error.h"

namespace muster::client {

struct LocalUp {
  std::filesystem::path dir;
  std::uint32_t nodes = 2;
  std::uint32_t devices = 4;                 // a node
  std::vector<std::string> controller_args;  // passed on, for tests and operators
};

// Starts what is not running, waits until every node of `up` is connected: then all nodes that are, those of an earlier, larger cluster among them. What runs
// is left as it is, with as many devices as it has. A daemon that ends at once is reported with the end of its log.
Result<std::vector<v1::Node>> local_up(Context& context, const LocalUp& up, std::chrono::milliseconds timeout);

// Cancels all live jobs, waits for their ranks to be gone, then stops the daemons; whatever is left after the deadline is killed, ranks included.
Result<void> local_down(Context& context, const std::filesystem::path& dir, std::chrono::milliseconds timeout);

}  // namespace muster::client
