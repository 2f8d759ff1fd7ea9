// Whether the logs of a job can show that its training reached the last step.
#include "common/engine/arguments.h"
#include "common/engine/rows.h"

namespace muster::engine {

std::string no_last_step(const v1::JobSpec& spec) {
  const v1::ObserveSpec& observe = spec.observe();
  if (spec.launch().mode() == v1::LAUNCH_MODE_EVAL || spec.launch().mode() == v1::LAUNCH_MODE_PREDICT) return "launch.mode asks for no training";
  if (observe.grammar() == "none") return "observe.progress is none, so no line is read";
  if (observe.grammar() == "custom" && observe.total().empty()) return "observe.progress has no total";
  // Megatron-LM: loads, evaluates and ends.
  if (has_option(spec_words(spec), "--skip-train")) return "--skip-train asks for no training";
  return {};
}

}  // namespace muster::engine
