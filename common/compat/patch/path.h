// The path of a value in a file: a.b.c, a.list[2],
// callbacks[type=CheckpointMonitor].save_checkpoint_steps. Pure.
//
// A '.', '[', ']' or '\' that belongs to a key has a backslash before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::patch {

struct Step {
  enum class Kind : std::uint8_t { Key, Index, Match };
  Kind kind = Kind::Key;
  std::string name;   // Key; Match: the key whose value identifies an item
  std::string value;  // Match
  std::size_t index = 0;
};

inline constexpr std::size_t kPathBytesMax = 1024;

// Errors (InvalidArgument) say what is wrong with the path and what is accepted.
Result<std::vector<Step>> parse_path(std::string_view text);

// The text of the first `count` steps.
std::string path_text(const std::vector<Step>& steps, std::size_t count);

}  // namespace muster::patch
