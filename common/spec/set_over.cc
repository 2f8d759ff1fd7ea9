// Applies --set and --env to a complete spec; `muster resume` makes a new job from the result.
#include "common/spec/field.h"
#include "common/spec/keys/key_type.h"
#include "common/spec/parse.h"
#include "common/spec/read_spec.h"
#include "common/spec/yaml_tree.h"

namespace muster::spec {
namespace {

// Null of a section: as if none of its keys were there.
void clear_below(v1::JobSpec& spec, const std::string& section) {
  for (const KeyRow& row : key_table())
    if (row.key.starts_with(section + "."))
      for (const std::string_view path : fields_of(row)) Field(spec, path).clear();
}

// Removes what the tree's keys replace. A map adds to what is there.
void clear_replaced(v1::JobSpec& spec, const Node& node, const std::string& prefix) {
  if (node.kind != Node::Kind::Map) return;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const Node& value = node.items[i];
    const std::string key = prefix.empty() ? node.keys[i].text : prefix + "." + node.keys[i].text;
    const KeyRow* row = find_key(key);
    if (row == nullptr) continue;
    if (value.kind != Node::Kind::Map || !row->type->map_adds)
      for (const std::string_view path : fields_of(*row)) Field(spec, path).clear();
    if (value.kind == Node::Kind::Null && !row->type->has_field) clear_below(spec, key);
    clear_replaced(spec, value, key);
  }
}

// If a file had changes before, the new ones come after the old ones.
void join_patches(google::protobuf::RepeatedPtrField<v1::ConfigPatch>& files) {
  for (int i = 0; i < files.size(); ++i) {
    for (int j = i + 1; j < files.size();) {
      if (files[j].file() != files[i].file()) {
        ++j;
        continue;
      }
      files[i].mutable_changes()->MergeFrom(files[j].changes());
      files.DeleteSubrange(j, 1);
    }
  }
}

}  // namespace

std::vector<Problem> set_over(v1::JobSpec& spec, const ParseOptions& options) {
  Node root{.kind = Node::Kind::Map};
  std::vector<Problem> problems;
  apply_overrides(root, options, problems);
  clear_replaced(spec, root, "");
  SpecReader reader(options, spec);
  reader.read(root);
  join_patches(*spec.mutable_launch()->mutable_patch());
  join_patches(*spec.mutable_resume()->mutable_patch());
  for (Problem& problem : complete(spec))
    if (!reader.spoiled(problem.key)) problems.push_back(std::move(problem));
  for (Problem& problem : reader.problems()) {
    problem.line = problem.column = 0;  // it is in no file
    problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace muster::spec
