// Whether a job's ranks save where muster decides.
//
// Fence rule (b) assumes that a gang in lockstep has ended when one of its ranks has ended. If this
// is ever wrong, files that an old writer still finishes must be in another directory than the
// files that a newer attempt reads. So launch.lockstep: auto means no where the save directory is
// not known.
#include <algorithm>

#include "common/engine/model/rows.h"
#include "common/engine/model/template.h"

namespace muster::engine {
namespace {

// Named by a template, or by the variable that every rank has and a shell expands.
bool names_save_dir(std::string_view text) {
  if (text.find("MUSTER_SAVE_DIR") != std::string_view::npos) return true;
  if (text.find("${save.dir}") == std::string_view::npos) return false;
  const auto parsed = Template::parse(text);
  return parsed && std::ranges::count(parsed->names(), "save.dir") > 0;
}

}  // namespace

bool saves_apart(const v1::JobSpec& spec) {
  const v1::LaunchSpec& launch = spec.launch();
  if (std::ranges::any_of(launch.run(), names_save_dir) ||
      std::ranges::any_of(launch.args(), names_save_dir))
    return true;
  if (names_save_dir(launch.cwd()) || std::ranges::any_of(spec.runtime().setup(), names_save_dir))
    return true;
  if (std::ranges::any_of(spec.runtime().env(),
                          [](const auto& variable) { return names_save_dir(variable.second); }))
    return true;
  const Engine* engine = find_engine(spec.engine());
  return engine != nullptr && engine->sets_save_dir != nullptr && engine->sets_save_dir(spec);
}

}  // namespace muster::engine
