// This program under another name: what stands first on the PATH of a script that `muster import`
// runs. `torchrun`, `msrun` and `python -m torch.distributed.run|launch` write down how they were
// called and end with status 0, without launching anything; so does a python that is a rank which
// the script puts into the background. A python for anything else is the next one on PATH, in place
// of this process.
//
//   <directory>/            of mode 0700; MUSTER_IMPORT_DIR
//     bin/torchrun, ...     links to this program
//     environment           what the script was given: NAME=VALUE, each with a byte 0 behind it
//     calls/0, 1, ...       Captured (captured.h), in the order of the calls
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace muster::import {

inline constexpr const char* kDirectoryVariable = "MUSTER_IMPORT_DIR";
// bytes; the kernel takes less for a command line and its environment
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

// Whether this process was called by a launcher's name and inside of such a script.
bool is_stand_in(std::string_view program);
// Its exit status: 0; 127: there is no such program; 1: the call could not be written down.
int run_stand_in(int argc, char** argv);

}  // namespace muster::import
