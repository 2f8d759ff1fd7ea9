#include "common/engine/mindformers/config_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/engine/mindformers/mindformers.h"
#include "common/engine/model/arguments.h"
#include "common/engine/model/training_end.h"

namespace muster::engine {
namespace {

constexpr std::string_view kSinkMode = "runner_config.sink_mode";

// Whether the command sets sink mode, by the option's name or as a pair of a configuration's key
// and a value.
bool command_says(const CommandLine& command) {
  return has_option(command, "--sink_mode") || std::ranges::any_of(command, [](const Word& word) {
           return word.text.starts_with(kSinkMode) ||
                  word.text.starts_with(fmt::format("--{}", kSinkMode));
         });
}

}  // namespace

std::vector<RefusedValue> refused_values(const v1::JobSpec& spec) {
  const bool goes_on = spec.resume().enabled() && asks_for_training(spec) && ranks_asked(spec) > 1;
  if (spec.engine() != "mindformers" || spec.launch().config().empty() || !goes_on ||
      !mindformers_sets_save_dir(spec))
    return {};
  if (command_says(spec_words(spec))) return {};
  return {{.at = std::string(kSinkMode),
           .value = false,
           .because = "without sink mode a later attempt cannot load the ranks' parts of a "
                      "checkpoint; set it to True there or with launch.patch, or start every "
                      "attempt from the beginning with resume: none"}};
}

bool says(std::string_view scalar, bool value) {
  constexpr std::array<std::array<std::string_view, 3>, 2> kWords = {
      {{"false", "no", "off"}, {"true", "yes", "on"}}};
  const auto same = [&](std::string_view word) {
    return std::ranges::equal(scalar, word, [](char a, char b) {
      return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b);
    });
  };
  return std::ranges::any_of(kWords.at(value ? 1 : 0), same);
}

}  // namespace muster::engine
