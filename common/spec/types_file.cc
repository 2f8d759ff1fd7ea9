// The types of keys that name a file whose bytes travel with the spec.
#include <fmt/format.h>

#include <utility>

#include "common/compat/code_patch/builtin.h"
#include "common/spec/field.h"
#include "common/spec/keys/key_type.h"
#include "common/spec/keys/values.h"
#include "common/spec/read_spec.h"
#include "common/spec/rules/rules.h"

namespace muster::spec {
namespace {

// The row's field is a message of a name and of bytes.
void read_file(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  const std::string key(row.key);
  if (value->empty()) return in.problem(node, key, fmt::format("is empty ({})", row.accepted));
  auto content = in.file(*value, row.most);
  if (!content)
    return in.problem(node, key, fmt::format("'{}': {}", shown(*value), content.error().message));
  const std::string path(first_field(row));
  const auto& type = *find_field(path)->message_type();
  Field(in.spec(), fmt::format("{}.{}", path, type.FindFieldByNumber(1)->name())).set_text(*value);
  Field(in.spec(), fmt::format("{}.{}", path, type.FindFieldByNumber(2)->name()))
      .set_text(*std::move(content));
}

void read_code_patches(SpecReader& in, const Node& node, const KeyRow& row) {
  bool too_many = false;
  v1::CodeSpec& code = *in.spec().mutable_code();
  in.one_or_list(node, row, "must be one file's name", [&](const Node& at) {
    if (code.patches_size() == kCodePatchesMax) {
      if (!std::exchange(too_many, true))
        in.problem(at, std::string(row.key),
                   fmt::format("has more than {} patches", kCodePatchesMax));
      return;
    }
    const std::string key = fmt::format("{}[{}]", row.key, code.patches_size());
    if (at.text.empty())
      return in.item_problem(at, key, fmt::format("is empty ({})", row.accepted));
    v1::CodePatch patch;
    patch.set_name(at.text);
    if (!at.text.starts_with(code_patch::kBuiltinScheme)) {
      auto content = in.file(at.text, kCodePatchBytesMax);
      if (!content)
        return in.item_problem(at, key,
                               fmt::format("'{}': {}", shown(at.text), content.error().message));
      if (content->empty())
        return in.item_problem(at, key, fmt::format("'{}' is empty", shown(at.text)));
      patch.set_content(*std::move(content));
    }
    in.place(key, at);
    *code.add_patches() = std::move(patch);
  });
}

Schema file_schema(const KeyRow&) {
  Schema schema = scalar_schema();
  schema["minLength"] = 1;
  return schema;
}
Schema files_schema(const KeyRow& row) {
  return {{"anyOf",
           {file_schema(row),
            {{"type", "array"}, {"items", file_schema(row)}, {"maxItems", kCodePatchesMax}}}}};
}

}  // namespace

const KeyType kFile = {.read = read_file, .schema = file_schema, .null = NullMeans::Absent};
const KeyType kCodePatches = {
    .read = read_code_patches, .schema = files_schema, .null = NullMeans::Absent};

}  // namespace muster::spec
