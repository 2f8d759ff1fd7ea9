// The rules of code. Nothing has checked a spec of the API before, so the content of the diffs is
// checked here, too.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <vector>

#include "common/compat/code_patch/builtin.h"
#include "common/compat/code_patch/unified.h"
#include "common/engine/model/engine.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

constexpr std::size_t kPatchNameMax = 4096;
constexpr std::size_t kCodePatchesBytesMax = 768U << 10U;  // of all together

void check_builtin(Draft& draft, const std::string& key, const std::string& full,
                   bool has_content) {
  const std::string_view name = std::string_view(full).substr(code_patch::kBuiltinScheme.size());
  if (const code_patch::Builtin* found = code_patch::find_builtin(name)) {
    if (has_content)
      return draft.problem(
          key, fmt::format("'{}' is one of muster's own and comes without content", full));
    const auto has_it = [&](const engine::Engine& engine) {
      return std::ranges::find(engine.builtin_patches, name) != engine.builtin_patches.end();
    };
    if (draft.engine == nullptr || has_it(*draft.engine)) return;  // an unknown engine is reported
    const auto owner = std::ranges::find_if(engine::engine_table(), has_it);
    draft.problem(key, fmt::format("'{}' is for engine {}: {}", full, owner->name, found->summary));
    return;
  }
  std::vector<std::string_view> names;
  for (const code_patch::Builtin& builtin : code_patch::builtins()) names.push_back(builtin.name);
  const std::string_view near = nearest(name, names);
  draft.problem(key,
                fmt::format("'{}' is none of muster's own{} (builtin:{})", shown(full),
                            near.empty() ? "" : fmt::format("; did you mean 'builtin:{}'?", near),
                            fmt::join(names, ", builtin:")));
}

void check_diff(Draft& draft, const std::string& key, const v1::CodePatch& patch) {
  if (patch.content().size() > kCodePatchBytesMax)
    return draft.problem(
        key,
        fmt::format("'{}' has {} bytes, at most {} KiB; put what is so big into the code itself",
                    shown(patch.name()), patch.content().size(), kCodePatchBytesMax >> 10U));
  if (patch.content().empty())
    return draft.problem(key, fmt::format("'{}' is empty", shown(patch.name())));
  if (auto files = code_patch::read_diff(patch.content()); !files)
    draft.problem(key, fmt::format("'{}': {}", shown(patch.name()), files.error().message));
}

void check_code_patches(Draft& draft) {
  const v1::CodeSpec& code = draft.spec.code();
  const auto& patches = code.patches();
  if (patches.empty()) return;
  if (patches.size() > kCodePatchesMax)
    return draft.problem(
        "code.patches", fmt::format("has {} patches, at most {}", patches.size(), kCodePatchesMax));
  if (code.at().find_first_not_of('/') == std::string::npos)
    draft.problem("code.patches",
                  "are put on a copy of the code, and there is no directory of it: name it with "
                  "code.from or code.at");
  std::size_t bytes = 0;
  std::set<std::string_view> builtins;
  for (int i = 0; i < patches.size(); ++i) {
    const v1::CodePatch& patch = patches[i];
    const std::string key = fmt::format("code.patches[{}]", i);
    bytes += patch.content().size();
    if (patch.name().empty() || patch.name().size() > kPatchNameMax) {
      draft.problem(key, "has no name (a file, or builtin:NAME)");
    } else if (!patch.name().starts_with(code_patch::kBuiltinScheme)) {
      check_diff(draft, key, patch);
    } else if (!builtins.insert(patch.name()).second) {
      draft.problem(key, fmt::format("'{}' is there twice", shown(patch.name())));
    } else {
      check_builtin(draft, key, patch.name(), !patch.content().empty());
    }
  }
  if (bytes > kCodePatchesBytesMax)
    draft.problem(
        "code.patches",
        fmt::format(
            "have {} bytes together, at most {} KiB; put what is so big into the code itself",
            bytes, kCodePatchesBytesMax >> 10U));
}

}  // namespace

void complete_code(Draft& draft) {
  v1::JobSpec& spec = draft.spec;
  const std::string& at = spec.code().at();
  if (!at.empty() && !at.starts_with('/'))
    draft.problem("code.at",
                  fmt::format("'{}' is not absolute (an absolute directory)", shown(at)));
  if (at.empty()) {
    const std::string& script = spec.launch().script();
    if (!script.empty() && !script.starts_with('/') && !script.starts_with('$'))
      draft.problem(
          "code.at",
          fmt::format("is missing, and launch.script '{}' is below it (an absolute directory)",
                      shown(script)));
    spec.mutable_code()->set_at("/");
  }
  check_code_patches(draft);
}

}  // namespace muster::spec
