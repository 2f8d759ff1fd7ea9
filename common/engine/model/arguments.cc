#include "common/engine/model/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster::engine {
namespace {

// "--save" and "--save=x" are options named --save.
bool named(std::string_view word, std::string_view name) {
  return word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '=');
}

bool overrules(const Word& word) { return word.key.starts_with("resume.args"); }

Option option_at(const CommandLine& command, std::size_t at, std::string_view name) {
  const std::string_view word = command[at].text;
  Option option{.word = at};
  if (word.size() > name.size()) {
    option.value = word.substr(name.size() + 1);
    option.has_value = true;
  } else if (at + 1 < command.size() && !command[at + 1].text.starts_with("--")) {
    option.value = command[at + 1].text;
    option.has_value = true;
  }
  return option;
}

void drop(CommandLine& command, std::string_view name, bool with_value) {
  CommandLine kept;
  kept.reserve(command.size());
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (!named(command[i].text, name) || overrules(command[i])) {
      kept.push_back(std::move(command[i]));
      continue;
    }
    const bool next = with_value && command[i].text.size() == name.size() &&
                      i + 1 < command.size() && !command[i + 1].text.starts_with("--");
    if (next) ++i;
  }
  command = std::move(kept);
}

}  // namespace

CommandLine spec_words(const v1::JobSpec& spec) {
  CommandLine words;
  const v1::LaunchSpec& launch = spec.launch();
  for (int i = 0; i < launch.run_size(); ++i)
    words.push_back({launch.run(i), fmt::format("launch.run[{}]", i)});
  for (int i = 0; i < launch.args_size(); ++i)
    words.push_back({launch.args(i), fmt::format("launch.args[{}]", i)});
  return words;
}

std::optional<Option> find_option(const CommandLine& command, std::string_view name) {
  for (std::size_t i = command.size(); i-- > 0;)
    if (named(command[i].text, name)) return option_at(command, i, name);
  return std::nullopt;
}

bool has_option(const CommandLine& command, std::string_view name) {
  return find_option(command, name).has_value();
}

bool set_option(CommandLine& command, std::string_view name, std::string_view value,
                const char* source) {
  bool any = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (!named(command[i].text, name) || overrules(command[i]) ||
        !option_at(command, i, name).has_value)
      continue;
    any = true;
    if (command[i].text.size() > name.size())
      command[i] = {fmt::format("{}={}", name, value), source};
    else
      command[++i] = {std::string(value), source};
  }
  return any;
}

void put_option(CommandLine& command, std::string_view name, std::string_view value,
                const char* source) {
  if (set_option(command, name, value, source) || has_option(command, name)) return;
  command.push_back({std::string(name), source});
  command.push_back({std::string(value), source});
}

void drop_flag(CommandLine& command, std::string_view name) { drop(command, name, false); }
void drop_option(CommandLine& command, std::string_view name) { drop(command, name, true); }

std::optional<std::uint64_t> whole_value(const Option& option) {
  std::uint64_t number = 0;
  const char* end = option.value.data() + option.value.size();
  const auto [at, error] = std::from_chars(option.value.data(), end, number);
  if (!option.has_value || option.value.empty() || error != std::errc{} || at != end)
    return std::nullopt;
  return number;
}

}  // namespace muster::engine
