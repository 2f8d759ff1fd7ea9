// Which key of the job's spec a file or program of an order came from, and the sentence about one
// that is not there: key, file, remedy. An order carries what became of the spec; which files it
// wants, and by which key, stands in NodeLaunch.patched. missing_file reads directories
// (nearest_file.h); the rest is pure.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Of a script that a command line names, by its absolute path: "launch.script", else "launch.run".
std::string key_of_script(const v1::NodeLaunch& order, const std::filesystem::path& path);

// Of a rank's program: "runtime.python", "launch.script" or "launch.run".
std::string key_of_program(const v1::NodeLaunch& order, const v1::RankProcess& rank);

// "launch.script: '/srv/code/trian.py' is not there on this node; nearest: '/srv/code/train.py'".
// In a copy of the code (code.patches) names are the code's.
std::string missing_file(const v1::NodeLaunch& order, std::string_view key,
                         const std::filesystem::path& path);

}  // namespace muster::agent
