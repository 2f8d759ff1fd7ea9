// A scenario file: reads it, and writes it with new outputs. Plain values.
//
// The file has a story in '#' lines, and then blocks. Each block has commands, a line "----", and
// the expected output of the commands, ended by an empty line. A rewrite keeps story and commands,
// and replaces the outputs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::scenarios {

struct Command {
  std::string verb;
  std::vector<std::string> words;              // after the verb, without the key=value ones
  std::map<std::string, std::string> options;  // key=value, key="with blanks"
  std::string text;                            // the line itself

  [[nodiscard]] std::string word(std::size_t at) const;
  [[nodiscard]] std::string option(const std::string& key, const std::string& otherwise = "") const;
  [[nodiscard]] bool has(const std::string& key) const { return options.contains(key); }
  [[nodiscard]] bool has_word(std::string_view word) const;
};

struct Block {
  std::string before;  // story and empty lines, unchanged
  std::vector<Command> commands;
  std::string expected;  // with a newline after every line
};

struct Script {
  std::vector<Block> blocks;
  std::string after;
};

Script read_script(const std::string& text);  // throws std::runtime_error: not a script
std::string write_script(const Script& script, const std::vector<std::string>& outputs);

}  // namespace muster::scenarios
