// What the setup left behind: its environment, which every process of the attempt inherits, and the
// end of its log, for the sentence that says why it failed. Both were written by the job's own
// user: any bytes, any length.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::worker {

// of all variables; what one process can be given is a little more
inline constexpr std::size_t kSetupBytesMost = 1'500'000;
inline constexpr std::size_t kSetupStringMost = 128 * 1024 - 1;  // of one; the kernel's own bound
inline constexpr std::size_t kSetupVariablesMost = 4096;

// NAME=value, each ended by a zero byte, without what is the shell's own (PWD, OLDPWD, SHLVL, _)
// and muster's (MUSTER_PROCESS_TAG, MUSTER_SETUP_ENV). Errors: nothing was written (the script left
// before its last line), a part of it, or too much.
Result<std::vector<std::string>> parse_setup_environment(std::string_view bytes);
Result<std::vector<std::string>> read_setup_environment(const std::filesystem::path& path);

// The line of the script that its shell was at when it left with a status of its own, by what
// stands in place of an environment (common/rundir/setup_prefix.h): at most 120 bytes, without
// control characters; empty: nothing says.
std::string failed_command(const std::filesystem::path& environment,
                           const std::filesystem::path& script);

// The last line of the log with something in it, without control characters, at most 400 bytes;
// empty: there is none.
std::string last_line(const std::filesystem::path& log);

}  // namespace muster::worker
