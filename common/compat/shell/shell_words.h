// Groups the words of a shell script into commands. Pure; linear time.
//
// The words are those of ShellLexer, unchanged. Comments, here-documents, redirections and <(...)
// are left out.
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

}  // namespace muster::launcher
