#include "worker/shim/edits.h"

#include <algorithm>

namespace muster::shim {
namespace {

using Words = std::vector<std::string>;

bool named(std::string_view word, std::string_view name) {
  return word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '=');
}

// An option has a value after '=', or in the next word if that is no option itself.
bool next_is_value(const Words& words, std::size_t at, std::string_view name) {
  return words[at].size() == name.size() && at + 1 < words.size() &&
         !words[at + 1].starts_with("--");
}

bool has(const Words& words, std::string_view name) {
  return std::any_of(words.begin() + 1, words.end(),
                     [name](const std::string& word) { return named(word, name); });
}

// Returns false if no such option has a value.
bool set(Words& words, std::string_view name, std::string_view value) {
  bool any = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!named(words[i], name)) continue;
    if (words[i].size() > name.size()) {
      words[i] = std::string(name) + "=" + std::string(value);
    } else if (next_is_value(words, i, name)) {
      words[++i] = value;
    } else {
      continue;
    }
    any = true;
  }
  return any;
}

void drop(Words& words, std::string_view name, bool with_value) {
  Words kept = {words.front()};
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!named(words[i], name)) {
      kept.push_back(std::move(words[i]));
    } else if (with_value && next_is_value(words, i, name)) {
      ++i;
    }
  }
  words = std::move(kept);
}

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool is_script(const Words& words, std::string_view name) {
  return words.front().substr(words.front().rfind('/') + 1) == name;
}

// Returns the last value, as argparse does. Empty: the option has none.
std::string last_value(const Words& words, std::string_view name) {
  std::string value;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!named(words[i], name)) continue;
    if (words[i].size() > name.size())
      value = words[i].substr(name.size() + 1);
    else if (next_is_value(words, i, name))
      value = words[++i];
  }
  return value;
}

// Checks the options of `only-with`.
bool has_any(const Words& words, std::string_view names) {
  while (!names.empty()) {
    if (has(words, take_word(names))) return true;
  }
  return false;
}

enum class Done { Yes, Stop, Unknown };

Done carry_out(std::string_view line, Words& program) {
  std::string_view rest = line;
  const std::string_view verb = take_word(rest);
  if (verb == "only-with") return has_any(program, rest) ? Done::Yes : Done::Stop;
  if (verb == "only-script") return is_script(program, rest) ? Done::Yes : Done::Stop;
  const std::string_view name = take_word(rest);
  if (!name.starts_with("--")) return Done::Unknown;
  if (verb == "saves" || verb == "loads") return Done::Yes;  // script_options() handles these
  if (verb == "set") {
    set(program, name, rest);
  } else if (verb == "put") {
    if (!set(program, name, rest)) {
      drop(program, name, false);
      program.emplace_back(name);
      program.emplace_back(rest);
    }
  } else if (verb == "drop" || verb == "drop-value") {
    drop(program, name, verb == "drop-value");
  } else if (verb == "match") {
    drop(program, name, false);
    if (has(program, rest)) program.emplace_back(name);
  } else {
    return Done::Unknown;
  }
  return Done::Yes;
}

}  // namespace

ScriptOptions script_options(std::string_view edits, const Words& program) {
  ScriptOptions given;
  if (program.empty()) return given;
  while (!edits.empty()) {
    std::string_view line = take_line(edits);
    const std::string_view verb = take_word(line);
    if (verb == "only-with" && !has_any(program, line)) return {};
    if (verb == "only-script" && !is_script(program, line)) return {};
    if (verb == "loads") given.load = last_value(program, take_word(line));
    if (verb != "saves") continue;
    given.save = last_value(program, take_word(line));
    given.weights_alone = has(program, line);
  }
  return given;
}

Result<void> edit_arguments(std::string_view edits, Words& program) {
  if (program.empty()) return {};
  while (!edits.empty()) {
    const std::string_view line = take_line(edits);
    if (line.empty()) continue;
    const Done done = carry_out(line, program);
    if (done == Done::Stop) return {};
    if (done == Done::Unknown)
      return fail(ErrorCode::InvalidArgument,
                  "changing the training program's arguments: MUSTER_SHIM_EDITS has a line that is "
                  "no change: '" +
                      std::string(line.substr(0, 100)) + "'; leave the variable as muster sets it");
  }
  return {};
}

std::size_t blank_argument(const Words& program) {
  for (std::size_t i = 1; i < program.size(); ++i) {
    if (!program[i].empty() && program[i].find_first_not_of(" \t\r\n") == std::string::npos)
      return i;
  }
  return 0;
}

}  // namespace muster::shim
