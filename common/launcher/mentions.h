// Which variables a word of a shell script mentions, and whether it gives them to a launcher. Pure;
// linear.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace muster::launcher {

struct Mention {
  std::string_view name;
  bool arithmetic = false;
  // the value of a launcher's option that says the placement: --nnodes $NAME
  bool option = false;
  bool fallback = false;  // ${NAME:-...}: its own value, where it has one
};

// $NAME and ${NAME...}, and within $((...)) also NAME alone; not between single quotes.
std::vector<Mention> mentions_of(std::string_view word);

// "--nproc-per-node=", "--nnodes ": what stands in front of `at` ends with such an option.
bool option_in_front(std::string_view text, std::size_t at);

}  // namespace muster::launcher
