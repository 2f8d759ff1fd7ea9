// Reads code.patches of a YAML spec: diff files, whose bytes travel with the spec, and names of
// muster's built-in patches.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "common/compat/code_patch/builtin.h"
#include "common/spec/complete_code.h"
#include "common/spec/read_spec.h"
#include "common/spec/values.h"

namespace muster::spec {

void SpecReader::code_patches(const Node& node, const KeyRow& row) {
  bool too_many = false;
  one_or_list(node, row, "must be one file's name", [&](const Node& at) {
    if (spec_.code().patches_size() == kCodePatchesMax) {
      if (!std::exchange(too_many, true))
        problem(at, std::string(row.key), fmt::format("has more than {} patches", kCodePatchesMax));
      return;
    }
    const std::string key = fmt::format("{}[{}]", row.key, spec_.code().patches_size());
    if (at.text.empty()) return item_problem(at, key, fmt::format("is empty ({})", row.accepted));
    v1::CodePatch patch;
    patch.set_name(at.text);
    if (!at.text.starts_with(code_patch::kBuiltinScheme)) {
      if (!options_.read_file)
        return item_problem(at, key, fmt::format("'{}': no file can be read here", shown(at.text)));
      auto content = options_.read_file(
          (std::filesystem::path(options_.base_dir) / at.text).lexically_normal().string(),
          kCodePatchBytesMax);
      if (!content)
        return item_problem(at, key,
                            fmt::format("'{}': {}", shown(at.text), content.error().message));
      if (content->empty())
        return item_problem(at, key, fmt::format("'{}' is empty", shown(at.text)));
      patch.set_content(*std::move(content));
    }
    places_[key] = {at.line, at.column};
    *spec_.mutable_code()->add_patches() = std::move(patch);
  });
}

}  // namespace muster::spec
