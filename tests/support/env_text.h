// Variables of an environment as a file of the frozen dumps has them: one NAME=value a line,
// sorted. Pure functions.
#pragma once

#include <map>
#include <sstream>
#include <string>

namespace muster::test {

using EnvironmentText = std::map<std::string, std::string, std::less<>>;

// A newline and a tab of a value are \n and \t. No value of muster's has a backslash otherwise.
inline std::string env_text(const EnvironmentText& environment) {
  std::string text;
  for (const auto& [name, value] : environment) {
    text += name + "=";
    for (const char letter : value)
      text += letter == '\n' ? "\\n" : letter == '\t' ? "\\t" : std::string(1, letter);
    text += "\n";
  }
  return text;
}
inline EnvironmentText environment_of(const std::string& text) {
  EnvironmentText environment;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    std::string& value = environment[line.substr(0, equals)];
    for (std::size_t at = equals + 1; at < line.size(); ++at) {
      const bool escaped = line[at] == '\\' && at + 1 < line.size();
      if (escaped) ++at;
      value += !escaped ? line[at] : line[at] == 'n' ? '\n' : '\t';
    }
  }
  return environment;
}
// Returns the frozen variables that are gone or have another value today, one a line.
inline std::string env_lost(const std::string& frozen, const EnvironmentText& today) {
  std::string lost;
  for (const auto& [name, value] : environment_of(frozen)) {
    const auto now = today.find(name);
    if (now == today.end() || now->second != value) lost += name + "=" + value + "\n";
  }
  return lost;
}

}  // namespace muster::test
