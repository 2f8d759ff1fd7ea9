// The rules of arguments that name data in a store, as ModelArts' tutorials write them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"
#include "common/store/selection.h"
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

// The argument at words[i], if it is `option` and has a value.
std::optional<DataArgument> value_of(std::string_view option, const auto& words, int i) {
  const std::string_view word = words[i];
  if (word == option && i + 1 < words.size() && !words[i + 1].starts_with("--"))
    return DataArgument{.word = i + 1, .at = 0, .option = option};
  if (word.starts_with(option) && word.substr(option.size()).starts_with('='))
    return DataArgument{.word = i, .at = option.size() + 1, .option = option};
  return std::nullopt;
}

class Arguments {
 public:
  Arguments(Draft& draft, const char* key, TextList& words)
      : draft_(draft), key_(key), words_(words) {}

  void run() {
    for (int i = 0; i < words_.size(); ++i) {
      if (const std::string_view option = draft_.engine->output_option; !option.empty())
        while (i < words_.size() && take_output(value_of(option, words_, i), i)) {
        }
      if (i == words_.size()) break;
      for (const std::string_view option : draft_.engine->input_options)
        if (const auto one = value_of(option, words_, i); one && is_url(*one)) take(*one);
      for (const std::string_view option : draft_.engine->prefix_options)
        if (auto one = value_of(option, words_, i)) {
          if (is_url(*one)) take_prefix(*one);
          // It takes all words up to the next option.
          while (one->at == 0 && ++one->word < words_.size() &&
                 !words_[one->word].starts_with("--"))
            if (is_url(*one)) take_prefix(*one);
        }
    }
  }

 private:
  [[nodiscard]] std::string from(const DataArgument& one) const {
    return words_[one.word].substr(one.at);
  }
  [[nodiscard]] bool is_url(const DataArgument& one) const { return store::is_url(from(one)); }
  void wrong(const DataArgument& one, std::string_view why) {
    draft_.problem(fmt::format("{}[{}]", key_, one.word),
                   fmt::format("{} '{}': {}", one.option, shown(from(one)), why));
  }
  void replace(const DataArgument& one, std::string_view input, std::string_view below = {}) {
    words_[one.word].replace(
        one.at, std::string::npos,
        fmt::format("${{inputs.{}}}{}{}", input, below.empty() ? "" : "/", below));
  }

  // True: the argument that began at words[first] is gone.
  bool take_output(const std::optional<DataArgument>& one, int first) {
    if (!one || !is_url(*one)) return false;
    std::string& to = *draft_.spec.mutable_outputs()->mutable_to();
    if (const auto url = store::parse_url(from(*one)); !url)
      wrong(*one, url.error().message);
    else if (!to.empty() && to != from(*one))
      wrong(*one, fmt::format("outputs.to is '{}'; leave one of the two out", shown(to)));
    else
      to = from(*one);
    words_.DeleteSubrange(first, one->word - first + 1);
    return true;
  }

  void take(const DataArgument& one) {
    const std::string name = input_name(one.option);
    if (const std::string why = add_input(draft_, name, from(one)); !why.empty())
      return wrong(one, why);
    replace(one, name);
  }

  // The beginning of files' names: the input is the directory, and of that the files that begin so.
  void take_prefix(const DataArgument& one) {
    const std::string url = from(one);
    if (const auto parsed = store::parse_url(url); !parsed)
      return wrong(one, parsed.error().message);
    const std::size_t slash = url.rfind('/');
    const std::string above = url.substr(0, slash), name = url.substr(slash + 1);
    if (above.ends_with('/') || name.empty())
      return wrong(one, "it names no files; it is the beginning of their names, without .bin");
    const std::string pattern = store::exact_pattern(name) + "*";
    v1::InputSpec* input = directory(one, above);
    if (std::ranges::find(input->include(), pattern) == input->include().end())
      input->add_include(pattern);
    replace(one, input->name(), name);
  }

  // data_path, data_path_2, ...: that of this directory, made if there is none.
  v1::InputSpec* directory(const DataArgument& one, const std::string& url) {
    auto& inputs = *draft_.spec.mutable_inputs();
    const std::string first = input_name(one.option);
    std::string name = first;
    for (int count = 2;; ++count) {
      const auto known = std::ranges::find(inputs, name, &v1::InputSpec::name);
      if (known == inputs.end()) break;
      if (known->from() == url && made_.contains(name)) return &*known;
      name = fmt::format("{}_{}", first, count);
    }
    v1::InputSpec& input = *inputs.Add();
    input.set_name(name);
    input.set_from(url);
    made_.insert(name);
    return &input;
  }

  Draft& draft_;
  const char* const key_;
  TextList& words_;
  std::set<std::string> made_;  // inputs of directories: those of the user stay as they are
};

}  // namespace

std::string add_input(Draft& draft, const std::string& name, const std::string& from) {
  if (const auto url = store::parse_url(from); !url) return url.error().message;
  auto& inputs = *draft.spec.mutable_inputs();
  const auto known = std::ranges::find(inputs, name, &v1::InputSpec::name);
  if (known != inputs.end() && known->from() != from)
    return fmt::format(
        "inputs.{} is '{}'; write ${{inputs.{}}} here, or give the input another "
        "name",
        name, shown(known->from()), name);
  if (known != inputs.end()) return {};
  v1::InputSpec& input = *inputs.Add();
  input.set_name(name);
  input.set_from(from);
  return {};
}

void complete_arguments(Draft& draft) {
  if (draft.engine == nullptr) return;
  v1::LaunchSpec& launch = *draft.spec.mutable_launch();
  Arguments(draft, "launch.run", *launch.mutable_run()).run();
  Arguments(draft, "launch.args", *launch.mutable_args()).run();
}

}  // namespace muster::spec
