// Splits a shell script into commands and words. Pure; linear time.
//
// The words are unchanged: nothing is expanded, and quotes stay. Comments, here-documents and
// redirections are skipped. The content of $(...), `...` and brackets belongs to its word. A quote
// that is never closed includes the rest of the text.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace muster::launcher {

struct ShellWord {
  std::size_t line = 1;  // where it begins
  std::string_view text;
};
// The words between two of ; & | ( ) and line ends. A command has at least one word.
using ShellCommand = std::vector<ShellWord>;

std::vector<ShellCommand> shell_commands(std::string_view script);

// NAME=VALUE, NAME+=VALUE or NAME=(...). Both fields are empty if the word is no assignment.
struct ShellAssignment {
  std::string_view name, value;
};
ShellAssignment shell_assignment(std::string_view word);

// The length of the variable name at the beginning of `text`: letters, digits and _.
std::size_t shell_name_length(std::string_view text);

}  // namespace muster::launcher
