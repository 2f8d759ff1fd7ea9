// The rules of the keys that are no section: name, description, labels, compat, engine.
#include <fmt/format.h>

#include "common/engine/ascend/modelarts.h"
#include "common/spec/keys/key_table.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

// If the intended engine is known, the later rules use it. Otherwise they would report problems
// whose only cause is the wrong engine.
void unknown_engine(Draft& draft) {
  const KeyRow& row = *find_key("engine");
  const std::string& given = draft.spec.engine();
  if (given.empty()) return draft.problem("engine", fmt::format("is missing ({})", row.accepted));
  if (fmt::format(" | {} | ", row.later).find(fmt::format(" | {} | ", given)) != std::string::npos)
    return draft.problem(
        "engine", fmt::format("'{}' is known but not in this release ({})", given, row.accepted));
  std::vector<std::string_view> names;
  for (const engine::Engine& engine : engine::engine_table()) names.push_back(engine.name);
  const std::string_view meaning = value_meant("engine", given);
  const std::string_view meant = meaning.empty() ? nearest(given, names) : meaning;
  draft.problem(
      "engine",
      fmt::format("'{}' is not accepted{} ({})", shown(given),
                  meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant), row.accepted));
  if (meant.empty()) return;
  draft.engine = engine::find_engine(meant);
  draft.spec.set_engine(std::string(meant));
}

}  // namespace

void complete_job(Draft& draft) {
  v1::JobSpec& spec = draft.spec;
  if (std::string wrong = job_name_problem(spec.name()); !wrong.empty())
    draft.problem("name", std::move(wrong));
  if (spec.description().size() > 1024)
    draft.problem("description", fmt::format("has {} bytes ({})", spec.description().size(),
                                             accepted_of("description")));
  else if (!is_printable(spec.description()))
    draft.problem("description", "has control characters in it");
  if (spec.compat() == "none") spec.clear_compat();
  if (!spec.compat().empty() && !engine::is_modelarts(spec))
    draft.problem("compat", fmt::format("'{}' is not accepted ({})", shown(spec.compat()),
                                        accepted_of("compat")));
  check_labels(draft, "labels", spec.labels());
  draft.engine = engine::find_engine(spec.engine());
  if (draft.engine == nullptr) unknown_engine(draft);
  // The rules of code need the script.
  v1::LaunchSpec& launch = *spec.mutable_launch();
  if (draft.engine != nullptr && !draft.engine->script.empty() && launch.run().empty() &&
      launch.script().empty())
    launch.set_script(std::string(draft.engine->script));
}

}  // namespace muster::spec
