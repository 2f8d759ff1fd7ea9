// Starts, finds and stops a private cluster on this machine: real daemons, SQLite, a unix socket of
// mode 0600 (local_daemons.h). Stateless functions. One thread; blocks with deadlines.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/commands/call/context.h"
#include "client/commands/local/local_daemons.h"
#include "common/base/error.h"

namespace muster::client {

struct LocalUp {
  std::filesystem::path dir;
  std::optional<std::uint32_t> nodes;  // none: as before, else 2
  // for each node; none: as it had, a new one as many as the first, else 4
  std::optional<std::uint32_t> devices;
  // "cpu", or a type of stand-ins (local_cards.h); none: as it had, a new one as the first, else
  // cpu
  std::optional<std::string> device_type;
  std::vector<std::string> controller_args;  // passed on, for tests and operators
};
struct LocalNodes {
  std::vector<v1::Node> nodes;  // all connected nodes
  std::string note;             // what was repaired; empty: nothing
};

// Starts what is not running, and waits until every node of `up` is connected. Returns all
// connected nodes, also those of an earlier, larger cluster. Running daemons stay as they are, with
// their number of devices, except a controller that no client can find: that one is started anew.
// If a daemon ends at once, the error has the end of its log.
Result<LocalNodes> local_up(Context& context, const LocalUp& up, std::chrono::milliseconds timeout);

// Cancels all live jobs, waits for their ranks to be gone, then stops the daemons. Whatever is left
// after the deadline is killed, with its ranks. Returns why jobs could not be cancelled, or an
// empty text.
Result<std::string> local_down(Context& context, const std::filesystem::path& dir,
                               std::chrono::milliseconds timeout);

// For a running controller: returns why no client reaches it, and what would help. Returns an empty
// text if it answers.
std::string local_silence(Context& context, const std::filesystem::path& dir);

}  // namespace muster::client
