#include "worker/shim/edits.h"

#include <algorithm>

namespace muster::shim {
namespace {

using Kind = ArgumentEdit::Kind;

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

// Whether the edits below this one apply, too.
bool goes_on(const ArgumentEdit& edit, const Words& program) {
  if (edit.kind == Kind::OnlyWith)
    return std::ranges::any_of(edit.options,
                               [&](const std::string& name) { return has(program, name); });
  return edit.kind != Kind::OnlyScript || is_script(program, edit.value);
}

void carry_out(const ArgumentEdit& edit, Words& program) {
  switch (edit.kind) {
    case Kind::Set: set_option(program, edit.option, edit.value); break;
    case Kind::Put:
      if (set_option(program, edit.option, edit.value)) break;
      drop(program, edit.option, false);
      program.push_back(edit.option);
      program.push_back(edit.value);
      break;
    case Kind::Drop: drop(program, edit.option, false); break;
    case Kind::DropValue: drop(program, edit.option, true); break;
    case Kind::Match:
      drop(program, edit.option, false);
      if (has(program, edit.value)) program.push_back(edit.option);
      break;
    case Kind::OnlyWith:  // goes_on()
    case Kind::OnlyScript:
    case Kind::Saves:  // script_options()
    case Kind::Loads: break;
  }
}

}  // namespace

bool set_option(Words& program, std::string_view name, std::string_view value) {
  bool any = false;
  for (std::size_t i = 1; i < program.size(); ++i) {
    if (!named(program[i], name)) continue;
    if (program[i].size() > name.size()) {
      program[i] = std::string(name) + "=" + std::string(value);
    } else if (next_is_value(program, i, name)) {
      program[++i] = value;
    } else {
      continue;
    }
    any = true;
  }
  return any;
}

ScriptOptions script_options(const ArgumentEdits& edits, const Words& program) {
  ScriptOptions given;
  if (program.empty()) return given;
  for (const ArgumentEdit& edit : edits) {
    if (!goes_on(edit, program)) return {};
    if (edit.kind == Kind::Loads) given.load = last_value(program, edit.option);
    if (edit.kind != Kind::Saves) continue;
    given.save = last_value(program, edit.option);
    given.weights_alone = has(program, edit.value);
  }
  return given;
}

void edit_arguments(const ArgumentEdits& edits, Words& program) {
  if (program.empty()) return;
  for (const ArgumentEdit& edit : edits) {
    if (!goes_on(edit, program)) return;
    carry_out(edit, program);
  }
}

std::size_t blank_argument(const Words& program) {
  for (std::size_t i = 1; i < program.size(); ++i) {
    if (!program[i].empty() && program[i].find_first_not_of(" \t\r\n") == std::string::npos)
      return i;
  }
  return 0;
}

}  // namespace muster::shim
