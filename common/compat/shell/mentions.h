// Finds the variables that a word of a shell script mentions, and whether the word passes them to a
// launcher. Pure; linear time.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace muster::launcher {

struct Mention {
  std::string_view name;
  bool arithmetic = false;
  // the value of a launcher's option that states the placement: --nnodes $NAME
  bool option = false;
  bool fallback = false;  // ${NAME:-...}: the variable's own value, if it has one
};

// Finds $NAME and ${NAME...}, and inside $((...)) also NAME alone. Text between single quotes is
// left out.
std::vector<Mention> mentions_of(std::string_view word);

// Whether the text in front of `at` ends with such an option: "--nproc-per-node=", "--nnodes ".
bool option_in_front(std::string_view text, std::size_t at);

}  // namespace muster::launcher
