// What the log of a companion says of its end. Blocking, bounded; any thread.
#pragma once

#include <filesystem>
#include <string>

namespace muster::agent {

// The line of the last 64 KiB that tells best why it ended, at most 1,024 bytes; empty: none does, or the log cannot be read.
std::string evidence_of_log(const std::filesystem::path& log);

}  // namespace muster::agent
