// Whether a job's logs can show that its training reached the last step.
#include "common/engine/model/training_end.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/model/arguments.h"
#include "common/engine/model/rows.h"
#include "common/engine/ranktable/words.h"

namespace muster::engine {

bool trains_surely(const v1::JobSpec& spec) {
  const Engine* engine = find_engine(spec.engine());
  return engine == nullptr || engine->trains_surely == nullptr || engine->trains_surely(spec);
}

bool asks_for_training(const v1::JobSpec& spec) {
  const v1::LaunchMode mode = spec.launch().mode();
  return mode != v1::LAUNCH_MODE_EVAL && mode != v1::LAUNCH_MODE_PREDICT &&
         mode != v1::LAUNCH_MODE_STRATEGY;
}

std::string rank_file(const v1::JobSpec& spec) {
  const Engine* engine = find_engine(spec.engine());
  return engine == nullptr || engine->rank_file == nullptr ? "" : engine->rank_file(spec);
}

std::string no_last_step(const v1::JobSpec& spec) {
  const v1::ObserveSpec& observe = spec.observe();
  if (!asks_for_training(spec)) return "launch.mode asks for no training";
  if (observe.grammar() == "none") return "observe.progress is none, so no line is read";
  if (observe.grammar() == "custom" && observe.total().empty())
    return "observe.progress has no total";
  const Engine* engine = find_engine(spec.engine());
  if (const std::string mode =
          engine == nullptr || engine->run_mode == nullptr ? "" : engine->run_mode(spec);
      !mode.empty() && mode != "train" && mode != "finetune")
    return fmt::format("--run_mode {} asks for no training", ranktable::shown(mode));
  // Megatron-LM then loads a checkpoint, evaluates it and ends.
  if (has_option(spec_words(spec), "--skip-train")) return "--skip-train asks for no training";
  return {};
}

}  // namespace muster::engine
