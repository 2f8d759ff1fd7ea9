#include "common/spec/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/model/engine.h"
#include "common/spec/keys/key_type.h"
#include "common/spec/keys/values.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

constexpr const char* kNotYet = "not in this release: only the default is accepted";

std::string list_below(std::string_view section) {
  std::string text;
  for (const KeyRow* row : keys_below(section))
    text += fmt::format("  {:<18} {}{}\n", leaf(row->key), row->help,
                        row->type == &kLater ? " (not in this release)" : "");
  return text;
}

}  // namespace

std::vector<std::string_view> known_keys() {
  std::vector<std::string_view> keys;
  for (const KeyRow& row : key_table()) keys.push_back(row.key);
  return keys;
}

Result<std::string> explain(std::string_view key) {
  // A stage's name has its own two keys below it, and the keys of the top level.
  if (constexpr std::string_view kOfStage = "stages.";
      key.starts_with(kOfStage) && find_key(key) == nullptr) {
    const std::string_view below = key.substr(std::min(key.find('.', kOfStage.size()), key.size()));
    if (const KeyRow* own = find_key(fmt::format("stages.NAME{}", below));
        own != nullptr || below.size() < 2)
      return explain(own != nullptr ? own->key : "stages");
    return explain(below.substr(1));
  }
  if (key.empty())
    return fmt::format("the keys of a job spec; `muster explain KEY` says more\n{}",
                       list_below(""));
  const KeyRow* row = find_key(key);
  if (row == nullptr) {
    std::vector<std::string_view> leaves;
    for (const KeyRow& known : key_table()) {
      if (leaf(known.key) == key)
        return fail(
            ErrorCode::NotFound,
            fmt::format("explaining '{}': no such key; did you mean '{}'?", shown(key), known.key));
      leaves.push_back(known.key);
    }
    const KeyRow* alias = find_alias("", key);
    const std::string_view near = alias != nullptr ? alias->key : nearest(key, leaves);
    return fail(ErrorCode::NotFound,
                fmt::format("explaining '{}': no such key; {}", shown(key),
                            near.empty() ? "`muster explain` lists them"
                                         : fmt::format("did you mean '{}'?", near)));
  }
  std::string text = fmt::format("{}: {}\n", row->key, row->help);
  if (row->type == &kLater) text += fmt::format("  {}\n", kNotYet);
  if (!row->accepted.empty()) text += fmt::format("  accepted: {}\n", row->accepted);
  if (!row->later.empty())
    text += fmt::format("  known, but not in this release: {}\n", row->later);
  if (row->type != &kSection && row->type != &kStart)
    text += row->fallback.empty() ? "  required\n" : fmt::format("  default: {}\n", row->fallback);
  if (row->key == "engine")
    for (const engine::Engine& engine : engine::engine_table())
      text += fmt::format("  {:<18} {}\n", engine.name, engine.summary);
  if (row->key == "launch.args" || row->key == "runtime.env")
    text += fmt::format("  templates: ${{{}}}; $${{ is a literal ${{\n",
                        fmt::join(engine::known_templates(), "} ${"));
  return text + list_below(row->key == "stages" ? "stages.NAME" : row->key);
}

}  // namespace muster::spec
