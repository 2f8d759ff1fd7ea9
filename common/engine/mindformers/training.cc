// What a command of MindFormers says about its training: --run_mode, and the files of mode
// strategy.
#include <algorithm>

#include "common/engine/mindformers/mindformers.h"
#include "common/engine/model/arguments.h"

namespace muster::engine {

// The value of the last --run_mode in the command, also inside a word that is itself a command line
// (bash -c "..."). Empty: there is none, or it is a template.
std::string mindformers_run_mode(const v1::JobSpec& spec) {
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

bool mindformers_trains_surely(const v1::JobSpec& spec) {
  const std::string mode = mindformers_run_mode(spec);
  return mindformers_sets_save_dir(spec) || mode == "train" || mode == "finetune";
}

// --output_dir decides where the file is written, and muster gives this option only to
// run_mindformer.py.
std::string mindformers_rank_file(const v1::JobSpec& spec) {
  const bool known =
      spec.launch().mode() == v1::LAUNCH_MODE_STRATEGY && mindformers_sets_save_dir(spec);
  return known ? "${save.dir}/strategy/ckpt_strategy_rank_${rank}.ckpt" : "";
}

}  // namespace muster::engine
