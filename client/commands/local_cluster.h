// A private cluster on this machine: real daemons, SQLite, a unix socket of mode 0600 (or loopback
// TCP and a token where the path is too long for a socket). Starts, finds and stops them
// (local_daemons.h). One thread; blocks with deadlines.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/commands/context.h"
#include "client/commands/local_daemons.h"
#include "common/base/error.h"

namespace muster::client {

struct LocalUp {
  std::filesystem::path dir;
  std::optional<std::uint32_t> nodes;  // none: those there were, else 2
  // a node; none: as many as it had, a new one as many as the first, else 4
  std::optional<std::uint32_t> devices;
  // "cpu", or of stand-ins (local_cards.h); none: as it had, a new one as the first, else cpu
  std::optional<std::string> device_type;
  std::vector<std::string> controller_args;  // passed on, for tests and operators
};
struct LocalNodes {
  std::vector<v1::Node> nodes;  // all that are connected
  std::string note;             // what had to be mended; empty: nothing
};

// Starts what is not running, waits until every node of `up` is connected: then all nodes that are,
// those of an earlier, larger cluster among them. What runs is left as it is, with as many devices
// as it has, but a controller that no client can find: it is started anew. A daemon that ends at
// once is reported with the end of its log.
Result<LocalNodes> local_up(Context& context, const LocalUp& up, std::chrono::milliseconds timeout);

// Cancels all live jobs, waits for their ranks to be gone, then stops the daemons; whatever is left
// after the deadline is killed, ranks included. The answer says why jobs could not be cancelled;
// empty: they were.
Result<std::string> local_down(Context& context, const std::filesystem::path& dir,
                               std::chrono::milliseconds timeout);

// Of a controller that runs: why no client reaches it, and what would help. Empty: it answers.
std::string local_silence(Context& context, const std::filesystem::path& dir);

}  // namespace muster::client
