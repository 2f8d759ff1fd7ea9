// The rules of launch. Those of launch.patch and launch.vars are in patches.cc.
#include <fmt/format.h>

#include "common/engine/model/training_end.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {
namespace {

// Keys that only MindFormers has.
void complete_modes(Draft& draft, v1::LaunchSpec& launch) {
  if (launch.mode() < v1::LAUNCH_MODE_UNSPECIFIED || launch.mode() > v1::LAUNCH_MODE_STRATEGY)
    draft.problem("launch.mode",
                  fmt::format("{} is not accepted ({})", static_cast<int>(launch.mode()),
                              accepted_of("launch.mode")));
  if (launch.launcher() < v1::LAUNCHER_UNSPECIFIED || launch.launcher() > v1::LAUNCHER_MSRUN)
    draft.problem("launch.launcher",
                  fmt::format("{} is not accepted ({})", static_cast<int>(launch.launcher()),
                              accepted_of("launch.launcher")));
  if (draft.engine != nullptr && draft.engine->own_modes) {
    if (launch.mode() == v1::LAUNCH_MODE_UNSPECIFIED) launch.set_mode(v1::LAUNCH_MODE_TRAIN);
    if (launch.launcher() == v1::LAUNCHER_UNSPECIFIED) launch.set_launcher(v1::LAUNCHER_RANKTABLE);
    return;
  }
  if (draft.engine == nullptr) return;
  const std::string& engine = draft.spec.engine();
  if (launch.mode() > v1::LAUNCH_MODE_TRAIN)
    draft.problem(
        "launch.mode",
        fmt::format("is for engine mindformers; {} has the default only (train)", engine));
  if (launch.launcher() != v1::LAUNCHER_UNSPECIFIED)
    draft.problem("launch.launcher",
                  fmt::format("is for engine mindformers; {} has the default only (auto)", engine));
  if (!launch.config().empty())
    draft.problem(
        "launch.config",
        fmt::format("is for engine mindformers; give {} its configuration in launch.args", engine));
}

void check_command(Draft& draft, const v1::LaunchSpec& launch) {
  check_words(draft, "launch.run", launch.run());
  check_words(draft, "launch.args", launch.args());
  if (launch.run().empty() && launch.script().empty())
    draft.problem("launch.run",
                  "nothing to run: give launch.script (and launch.args), or the whole command as "
                  "launch.run");
  else if (!launch.run().empty() && !launch.script().empty())
    draft.problem("launch.script",
                  "launch.run is the whole command already; leave one of the two out");
  else if (!launch.run().empty() && !launch.args().empty())
    draft.problem("launch.args", "are arguments of launch.script; put them into launch.run");
  if (!launch.run().empty() && launch.run(0).empty())
    draft.problem("launch.run[0]", "is empty: the first word is the program");
}

}  // namespace

void complete_launch(Draft& draft) {
  v1::LaunchSpec& launch = *draft.spec.mutable_launch();
  if (launch.per() == v1::LAUNCH_PER_UNSPECIFIED) launch.set_per(v1::LAUNCH_PER_RANK);
  if (launch.per() != v1::LAUNCH_PER_RANK && launch.per() != v1::LAUNCH_PER_ONCE &&
      launch.per() != v1::LAUNCH_PER_NODE)
    draft.problem("launch.per",
                  fmt::format("{} is not accepted ({})", static_cast<int>(launch.per()),
                              accepted_of("launch.per")));
  complete_modes(draft, launch);
  check_command(draft, launch);
  if (launch.per() != v1::LAUNCH_PER_NODE && launch.has_intercept())
    draft.problem("launch.intercept", "is for launch.per: node; leave it out");
  else if (launch.per() == v1::LAUNCH_PER_NODE && !launch.has_intercept())
    launch.set_intercept(true);
  if (!launch.has_lockstep())
    launch.set_lockstep(draft.engine != nullptr && draft.engine->lockstep &&
                        launch.per() == v1::LAUNCH_PER_RANK &&
                        engine::asks_for_training(draft.spec) && engine::saves_apart(draft.spec));
}

}  // namespace muster::spec
