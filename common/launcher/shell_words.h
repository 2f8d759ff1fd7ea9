// A shell script's commands and their words, as they stand: nothing is expanded, and quotes stay.
// Comments, here-documents and redirections are passed over; what stands inside of $(...), `...`
// and brackets belongs to its word. A quote that is never closed takes the rest of the text. Pure;
// linear.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace muster::launcher {

struct ShellWord {
  std::size_t line = 1;  // where it begins
  std::string_view text;
};
// Between two of ; & | ( ) and line ends. `words` is not empty.
using ShellCommand = std::vector<ShellWord>;

std::vector<ShellCommand> shell_commands(std::string_view script);

// NAME=VALUE, NAME+=VALUE or NAME=(...). Nothing of it is there where the word is none.
struct ShellAssignment {
  std::string_view name, value;
};
ShellAssignment shell_assignment(std::string_view word);

// Letters, digits and _: how long a variable's name at the beginning of `text` is.
std::size_t shell_name_length(std::string_view text);

}  // namespace muster::launcher
