// The supervisor keeps one daemon of muster running on a host without systemd: it starts the daemon
// again whenever it ends, with back-off, unless it ends with a code of common/base/exit_codes.h.
// Each supervisor is a process of its own, `muster deploy supervise run DIR`, with one thread. The
// functions block.
//
//   DIR/command-line    the daemon's command line, one word a line
//   DIR/supervisor      "BOOT_ID SUPERVISOR_PID ITS_START_TIME DAEMON_PID ITS_START_TIME\n", while
//                       it runs; check_script.cc reads it, too
//   DIR/lock            locked (flock) by the supervisor that runs
//   DIR/supervisor.log  what the supervisor reports, and what the daemon prints before it has a log
//
// A daemon survives its killed supervisor. The next start ends it first. Workers and ranks are no
// part of this: an agent that ends leaves them, and the next one adopts them.
#pragma once

#include <filesystem>

#include "common/base/error.h"

namespace muster::supervise {

// Ends what runs in DIR, then starts a supervisor in a session of its own. Returns when the daemon
// has been started.
Result<void> start(const std::filesystem::path& dir);
// SIGTERM for the supervisor, which ends the daemon; returns when both are gone. Nothing runs: no
// error.
Result<void> stop(const std::filesystem::path& dir);
// The supervisor itself. Returns after SIGTERM or SIGINT. Conflict: another one runs there.
Result<void> run(const std::filesystem::path& dir);

}  // namespace muster::supervise
