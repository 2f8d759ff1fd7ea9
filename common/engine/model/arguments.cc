#include "common/engine/model/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/text/options.h"

namespace muster::engine {
namespace {

bool overrules(const Word& word) { return word.key.starts_with("resume.args"); }

void drop(CommandLine& command, std::string_view name, bool with_value) {
  std::vector<OptionSpan> dropped = find_options(texts_of(command), name);
  std::erase_if(dropped, [&](const OptionSpan& one) { return overrules(command[one.begin]); });
  if (!with_value)
    for (OptionSpan& one : dropped) one.end = one.begin + 1;
  erase_options(command, dropped);
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

std::vector<std::string_view> texts_of(const CommandLine& command) {
  std::vector<std::string_view> texts;
  texts.reserve(command.size());
  for (const Word& word : command) texts.emplace_back(word.text);
  return texts;
}

std::optional<Option> find_option(const CommandLine& command, std::string_view name) {
  const auto found = find_options(texts_of(command), name);
  if (found.empty()) return std::nullopt;
  const OptionSpan& last = found.back();
  return Option{.word = last.begin, .value = last.value, .has_value = last.has_value()};
}

bool has_option(const CommandLine& command, std::string_view name) {
  return find_option(command, name).has_value();
}

bool has_option(std::span<const std::string> args, std::string_view name) {
  return std::ranges::any_of(args,
                             [name](std::string_view word) { return option_name(word) == name; });
}

bool set_option(CommandLine& command, std::string_view name, std::string_view value,
                const char* source) {
  bool any = false;
  for (const OptionSpan& option : find_options(texts_of(command), name)) {
    if (!option.has_value() || overrules(command[option.begin])) continue;
    any = true;
    if (option.attached)
      command[option.begin] = {fmt::format("{}={}", name, value), source};
    else
      command[option.end - 1] = {std::string(value), source};
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
