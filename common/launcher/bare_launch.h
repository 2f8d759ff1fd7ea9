// Whether a script does anything but set values and call one launcher: then the launch alone says
// what it does, and muster can start the ranks itself. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster::launcher {

struct MoreThanLaunch {
  std::size_t line = 1;
  std::string command;  // its first words, cut at 80 bytes
};

// The first command that is none of: assignments, export, echo, set, ulimit, cd, a launcher (with
// `| tee` behind it), exit. Nothing: there is none.
std::optional<MoreThanLaunch> more_than_launch(std::string_view script);

}  // namespace muster::launcher
