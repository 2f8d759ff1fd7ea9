// A stand-in is this program under another name, first on the PATH of a script that `muster import`
// runs. The script starts it as a process of its own; main() runs it before anything else. One
// thread.
//
// `torchrun`, `msrun` and `python -m torch.distributed.run|launch` record how they were called and
// end with status 0, without a launch. A python that is a rank, which the script puts into the
// background, does the same. Any other python call executes the next python on PATH in place of
// this process.
//
//   <directory>/            of mode 0700; MUSTER_IMPORT_DIR
//     bin/torchrun, ...     links to this program
//     environment           the script's environment: NAME=VALUE, with a byte 0 after each
//     calls/0, 1, ...       Captured (captured.h), in the order of the calls
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace muster::import {

inline constexpr const char* kDirectoryVariable = "MUSTER_IMPORT_DIR";
// in bytes; the kernel's limit for a command line and its environment is lower
inline constexpr std::size_t kRecordMost = 16U << 20U;
inline constexpr std::size_t kCallsMost = 4096;

inline std::filesystem::path programs_dir(const std::filesystem::path& directory) {
  return directory / "bin";
}
inline std::filesystem::path environment_file(const std::filesystem::path& directory) {
  return directory / "environment";
}
inline std::filesystem::path calls_dir(const std::filesystem::path& directory) {
  return directory / "calls";
}

// True if this process was called by a launcher's name inside such a script.
bool is_stand_in(std::string_view program);
// Returns the exit status. 0: recorded. 127: there is no such program. 1: the call could not be
// recorded.
int run_stand_in(int argc, char** argv);

}  // namespace muster::import
