// Whether a script only sets values and calls one launcher. Then the launch alone states what the
// script does, and muster can start the ranks itself. Pure.
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

// The first command that is none of these: an assignment, export, readonly, declare, typeset,
// unset, echo, set, shopt, ulimit, cd, wait, true, ':', exit, a launcher (possibly with `| tee`
// after it). Nothing: there is none.
std::optional<MoreThanLaunch> more_than_launch(std::string_view script);

}  // namespace muster::launcher
