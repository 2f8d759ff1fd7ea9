// The rule of arguments that name data in a store, as ModelArts' tutorials write them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"
#include "common/store/store_url.h"

namespace muster::spec {
namespace {

// "train_dataset_dir" of "--train_dataset_dir"
std::string input_name(std::string_view option) {
  std::string name(option.substr(option.find_first_not_of('-')));
  std::ranges::replace(name, '-', '_');
  return name;
}

// An argument whose value is a URL: words[word] from `at` on.
struct DataArgument {
  int word = 0;
  std::size_t at = 0;
  std::string_view option;
};

std::optional<DataArgument> argument_at(const Draft& draft, const auto& words, int i) {
  for (const std::string_view option : draft.engine->input_options) {
    const std::string_view word = words[i];
    if (word == option && i + 1 < words.size() && store::is_url(words[i + 1]))
      return DataArgument{.word = i + 1, .at = 0, .option = option};
    if (word.starts_with(option) && word.substr(option.size()).starts_with('=') &&
        store::is_url(word.substr(option.size() + 1)))
      return DataArgument{.word = i, .at = option.size() + 1, .option = option};
  }
  return std::nullopt;
}

void make_input(Draft& draft, const char* key, auto& words, const DataArgument& argument) {
  std::string& word = words[argument.word];
  const std::string from = word.substr(argument.at), name = input_name(argument.option);
  const auto wrong = [&](std::string_view why) {
    draft.problem(fmt::format("{}[{}]", key, argument.word),
                  fmt::format("{} '{}': {}", argument.option, shown(from), why));
  };
  if (const auto url = store::parse_url(from); !url) return wrong(url.error().message);
  auto& inputs = *draft.spec.mutable_inputs();
  const auto known = std::ranges::find(inputs, name, &v1::InputSpec::name);
  if (known != inputs.end() && known->from() != from)
    return wrong(
        fmt::format("inputs.{} is '{}'; write ${{inputs.{}}} here, or give the input "
                    "another name",
                    name, shown(known->from()), name));
  if (known == inputs.end()) {
    v1::InputSpec& input = *inputs.Add();
    input.set_name(name);
    input.set_from(from);
  }
  word.replace(argument.at, std::string::npos, fmt::format("${{inputs.{}}}", name));
}

}  // namespace

void complete_arguments(Draft& draft) {
  if (draft.engine == nullptr) return;
  v1::LaunchSpec& launch = *draft.spec.mutable_launch();
  const auto replace = [&](const char* key, auto& words) {
    for (int i = 0; i < words.size(); ++i)
      if (const auto argument = argument_at(draft, words, i))
        make_input(draft, key, words, *argument);
  };
  replace("launch.run", *launch.mutable_run());
  replace("launch.args", *launch.mutable_args());
}

}  // namespace muster::spec
