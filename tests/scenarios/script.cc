#include "tests/scenarios/script.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace muster::scenarios {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ' ' && !quoted) {
      if (!word.empty()) words.push_back(std::exchange(word, {}));
    } else {
      word += letter;
    }
  }
  if (quoted) throw std::runtime_error("a quote is not closed: " + line);
  if (!word.empty()) words.push_back(word);
  return words;
}

Command read_command(const std::string& line) {
  Command command{.text = line};
  for (std::string& word : split(line)) {
    if (command.verb.empty()) {
      command.verb = std::move(word);
    } else if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      command.options[word.substr(0, equals)] = word.substr(equals + 1);
    } else {
      command.words.push_back(std::move(word));
    }
  }
  return command;
}

}  // namespace

std::string Command::word(std::size_t at) const {
  if (at >= words.size()) throw std::runtime_error("a word is missing: " + text);
  return words[at];
}

std::string Command::option(const std::string& key, const std::string& otherwise) const {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : found->second;
}

bool Command::has_word(std::string_view word) const {
  return std::ranges::find(words, word) != words.end();
}

Script read_script(const std::string& text) {
  Script script;
  Block block;
  std::istringstream lines(text);
  std::string line;
  bool output = false;
  while (std::getline(lines, line)) {
    if (output) {
      if (line.empty()) {
        script.blocks.push_back(std::exchange(block, {}));
        output = false;
      } else {
        block.expected += line + "\n";
      }
    } else if (line == "----") {
      if (block.commands.empty()) throw std::runtime_error("'----' without a command before it");
      output = true;
    } else if (line.empty() || line.front() == '#') {
      if (!block.commands.empty())
        throw std::runtime_error("no '----' behind: " + block.commands.back().text);
      block.before += line + "\n";
    } else {
      block.commands.push_back(read_command(line));
    }
  }
  if (output) {
    script.blocks.push_back(std::move(block));
  } else if (!block.commands.empty()) {
    throw std::runtime_error("no '----' behind: " + block.commands.back().text);
  } else {
    script.after = block.before;
  }
  return script;
}

std::string write_script(const Script& script, const std::vector<std::string>& outputs) {
  std::string text;
  for (std::size_t at = 0; at < script.blocks.size(); ++at) {
    const Block& block = script.blocks[at];
    text += block.before;
    for (const Command& command : block.commands) text += command.text + "\n";
    text += "----\n" + outputs[at];
    if (at + 1 < script.blocks.size() || !script.after.empty()) text += "\n";
  }
  return text + script.after;
}

}  // namespace muster::scenarios
