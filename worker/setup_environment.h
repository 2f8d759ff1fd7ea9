// Reads what the setup left: its environment, which every process of the attempt inherits, and the
// end of its log, which explains a failure. Plain functions; Supervisor calls them on the worker's
// one thread.
//
// The job's own user wrote both: they may have any bytes and any length.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::worker {

// All variables together. The kernel accepts a little more for one process.
inline constexpr std::size_t kSetupBytesMost = 1'500'000;
// one variable; the kernel's own bound
inline constexpr std::size_t kSetupStringMost = 128 * 1024 - 1;
inline constexpr std::size_t kSetupVariablesMost = 4096;

// Parses NAME=value, each ended by a zero byte. Leaves out variables of the shell (PWD, OLDPWD,
// SHLVL, _) and of muster (MUSTER_PROCESS_TAG, MUSTER_SETUP_ENV). Errors: nothing was written (the
// script ended before its last line), only a part was written, or too much.
Result<std::vector<std::string>> parse_setup_environment(std::string_view bytes);
Result<std::vector<std::string>> read_setup_environment(const std::filesystem::path& path);

// Returns the script line at which the shell exited with a status of its own. The file that
// normally holds the environment then names the line (common/rundir/setup_prefix.h). At most 120
// bytes, without control characters; empty: unknown.
std::string failed_command(const std::filesystem::path& environment,
                           const std::filesystem::path& script);

// Returns the last line of the log that is not blank, without control characters, at most 400
// bytes. Empty: there is none.
std::string last_line(const std::filesystem::path& log);

}  // namespace muster::worker
