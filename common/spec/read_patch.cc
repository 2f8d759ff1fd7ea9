// Reads launch.patch and resume.patch: FILE: {path: value}, in the file's order. Values are any
// YAML. They travel as YAML text, produced by the code that also writes the changed copies.
#include <fmt/format.h>

#include "common/compat/patch/document.h"
#include "common/spec/read_spec.h"
#include "common/spec/values.h"

namespace muster::spec {
namespace {

patch::NodeId copy_to(patch::Document& document, const Node& node) {
  patch::Node out;
  switch (node.kind) {
    case Node::Kind::Null: break;
    case Node::Kind::Scalar:
      out.kind = node.quoted || node.text.find('\n') != std::string::npos
                     ? patch::Node::Kind::Quoted
                     : patch::Node::Kind::Plain;
      out.text = node.text;
      break;
    case Node::Kind::List:
      out.kind = patch::Node::Kind::List;
      for (const Node& item : node.items) out.items.push_back({.node = copy_to(document, item)});
      break;
    case Node::Kind::Map:
      out.kind = patch::Node::Kind::Map;
      for (std::size_t i = 0; i < node.keys.size(); ++i) {
        out.keys.push_back(copy_to(document, node.keys[i]));
        out.items.push_back({.node = copy_to(document, node.items[i])});
      }
      break;
  }
  return document.add(std::move(out));
}

bool any_bad(const Node& node) {
  if (node.bad) return true;
  for (const Node& item : node.items)
    if (any_bad(item)) return true;
  return false;
}

Result<std::string> yaml_of(const Node& value) {
  patch::Document document;
  document.root = copy_to(document, value);
  auto text = patch::write_yaml(document);
  while (text && text->ends_with('\n')) text->pop_back();
  return text;
}

}  // namespace

void SpecReader::config_patch(const Node& node, const KeyRow& row) {
  auto& files = row.key == "launch.patch" ? *spec_.mutable_launch()->mutable_patch()
                                          : *spec_.mutable_resume()->mutable_patch();
  if (node.kind == Node::Kind::Null) return;
  const std::string key(row.key);
  if (node.kind != Node::Kind::Map)
    return problem(node, key, fmt::format("must be a map ({})", row.accepted));
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const Node& changes = node.items[i];
    const std::string one = fmt::format("{}[{}]", key, files.size());
    places_[one] = {node.keys[i].line, node.keys[i].column};
    if (changes.bad || changes.kind == Node::Kind::Null) continue;
    if (changes.kind != Node::Kind::Map) {
      item_problem(changes, one,
                   fmt::format("'{}' must be a map ({})", shown(node.keys[i].text), row.accepted));
      continue;
    }
    v1::ConfigPatch& file = *files.Add();
    file.set_file(node.keys[i].text);
    for (std::size_t j = 0; j < changes.keys.size(); ++j) {
      const std::string place = fmt::format("{}[{}]", one, file.changes_size());
      places_[place] = {changes.keys[j].line, changes.keys[j].column};
      if (any_bad(changes.items[j])) continue;
      auto value = yaml_of(changes.items[j]);
      if (!value) {
        item_problem(changes.items[j], place,
                     fmt::format("the value of '{}': {}", shown(changes.keys[j].text),
                                 value.error().message));
        continue;
      }
      v1::ConfigChange& change = *file.add_changes();
      change.set_at(changes.keys[j].text);
      change.set_value(std::move(*value));
    }
  }
}

void SpecReader::resume_drop(const Node& node, const KeyRow& row) {
  for (std::string& word : words(node, row, false))
    spec_.mutable_resume()->add_drop(std::move(word));
}

}  // namespace muster::spec
