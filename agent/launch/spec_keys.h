// Functions that find the key of the job's spec for a file or program of an order, and that write
// the sentence about a missing file: key, file, remedy. missing_file() reads directories
// (nearest_file.h); the others are pure. They keep no state.
//
// An order has only the result of the spec. NodeLaunch.needed says which files the spec requires,
// and by which key.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// For a script in a command line, by its absolute path: "launch.script", else "launch.run".
std::string key_of_script(const v1::NodeLaunch& order, const std::filesystem::path& path);

// For a rank's program: "runtime.python", "launch.script" or "launch.run".
std::string key_of_program(const v1::NodeLaunch& order, const v1::RankProcess& rank);

// "launch.script: '/srv/code/trian.py' is not there on this node; nearest: '/srv/code/train.py'".
// In a copy of the code (code.patches) the names are those in the code.
std::string missing_file(const v1::NodeLaunch& order, std::string_view key,
                         const std::filesystem::path& path);

}  // namespace muster::agent
