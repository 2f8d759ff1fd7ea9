// Whether a job's logs can show that its training reached the last step.
#include "common/engine/model/training_end.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/model/arguments.h"
#include "common/engine/model/rows.h"
#include "common/engine/ranktable/words.h"

namespace muster::engine {
namespace {

// The value of the last --run_mode in the command, also inside a word that is itself a command line
// (bash -c "..."). Empty: there is none, or it is a template.
std::string literal_run_mode(const v1::JobSpec& spec) {
  constexpr std::string_view kBlanks = " \t\n\"';&|()";
  CommandLine words;
  for (const Word& word : spec_words(spec)) {
    const std::string_view text = word.text;
    for (std::size_t at = text.find_first_not_of(kBlanks); at < text.size();) {
      const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
      words.push_back({std::string(text.substr(at, end - at)), word.key});
      at = text.find_first_not_of(kBlanks, end);
    }
  }
  const auto mode = find_option(words, "--run_mode");
  return mode && mode->value.find('$') == std::string_view::npos ? std::string(mode->value)
                                                                 : std::string();
}

bool is_training(std::string_view mode) { return mode == "train" || mode == "finetune"; }

}  // namespace

bool trains_surely(const v1::JobSpec& spec) {
  return spec.engine() != "mindformers" || mindformers_sets_save_dir(spec) ||
         is_training(literal_run_mode(spec));
}

bool asks_for_training(const v1::JobSpec& spec) {
  const v1::LaunchMode mode = spec.launch().mode();
  return mode != v1::LAUNCH_MODE_EVAL && mode != v1::LAUNCH_MODE_PREDICT &&
         mode != v1::LAUNCH_MODE_STRATEGY;
}

// --output_dir decides where the file is written, and muster gives this option only to
// run_mindformer.py.
std::string rank_file(const v1::JobSpec& spec) {
  const bool known = spec.engine() == "mindformers" &&
                     spec.launch().mode() == v1::LAUNCH_MODE_STRATEGY &&
                     mindformers_sets_save_dir(spec);
  return known ? "${save.dir}/strategy/ckpt_strategy_rank_${rank}.ckpt" : "";
}

std::string no_last_step(const v1::JobSpec& spec) {
  const v1::ObserveSpec& observe = spec.observe();
  if (!asks_for_training(spec)) return "launch.mode asks for no training";
  if (observe.grammar() == "none") return "observe.progress is none, so no line is read";
  if (observe.grammar() == "custom" && observe.total().empty())
    return "observe.progress has no total";
  if (const std::string mode = spec.engine() == "mindformers" ? literal_run_mode(spec) : "";
      !mode.empty() && !is_training(mode))
    return fmt::format("--run_mode {} asks for no training", ranktable::shown(mode));
  // Megatron-LM then loads a checkpoint, evaluates it and ends.
  if (has_option(spec_words(spec), "--skip-train")) return "--skip-train asks for no training";
  return {};
}

}  // namespace muster::engine
