// The types of keys whose values are maps of free names.
#include <fmt/format.h>

#include <algorithm>

#include "common/compat/patch/document.h"
#include "common/spec/field.h"
#include "common/spec/keys/key_type.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/read_spec.h"

namespace muster::spec {
namespace {

// Reports a value that is no map.
bool is_map(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map) return true;
  in.problem(node, std::string(row.key), fmt::format("must be a map ({})", row.accepted));
  return false;
}

void read_text_map(SpecReader& in, const Node& node, const KeyRow& row) {
  if (!is_map(in, node, row)) return;
  std::map<std::string, std::string> entries;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const Node& value = node.items[i];
    const std::string key = fmt::format("{}.{}", row.key, node.keys[i].text);
    in.place(key, value);
    if (value.bad)
      in.spoil(key);
    else if (value.kind == Node::Kind::Scalar)
      entries[node.keys[i].text] = value.text;
    else
      in.problem(value, shown(key),
                 value.kind == Node::Kind::Null ? "has no value; \"\" is the empty text"
                                                : "must be one text");
  }
  if (!entries.empty()) Field(in.spec(), first_field(row)).set_entries(entries);
}

// --- inputs --------------------------------------------------------------------------------------
constexpr const char* kInputForms = "PATH | {from: PATH, env: VARIABLE, include: [PATTERN]}";

// A pattern, or a list of them.
bool read_include(const Node& value, v1::InputSpec& input) {
  input.clear_include();
  if (value.kind == Node::Kind::Scalar) {
    input.add_include(value.text);
    return true;
  }
  if (value.kind != Node::Kind::List) return false;
  for (const Node& item : value.items) {
    if (item.kind != Node::Kind::Scalar) return false;
    input.add_include(item.text);
  }
  return true;
}

void read_input_part(SpecReader& in, const Node& name, const Node& value, const std::string& key,
                     v1::InputSpec& input) {
  const std::string& part = name.text;
  const std::string at = fmt::format("{}.{}", key, shown(part));
  in.place(at, value);
  if (value.bad) {
    in.spoil(key);
  } else if (part == "to" || part == "pass" || part == "unpack" || part == "scope") {
    in.problem(name, at, "is known but not in this release: files are used in place; leave it out");
  } else if (part == "include") {
    if (!read_include(value, input)) in.problem(value, at, "must be a pattern, or a list of them");
  } else if (part != "from" && part != "env") {
    in.problem(name, at, "unknown key (from, env, include)");
  } else if (value.kind != Node::Kind::Scalar) {
    in.problem(value, at,
               value.kind == Node::Kind::Null ? fmt::format("has no value ({})", kInputForms)
                                              : "must be one text");
    in.spoil(key);
  } else if (part == "from") {
    input.set_from(value.text);
  } else {
    input.set_env(value.text);
  }
}

void read_input(SpecReader& in, const std::string& name, const Node& node, const std::string& key) {
  v1::InputSpec input;
  input.set_name(name);
  if (node.kind == Node::Kind::Scalar) {
    input.set_from(node.text);
  } else if (node.kind == Node::Kind::Map) {
    for (std::size_t i = 0; i < node.keys.size(); ++i)
      read_input_part(in, node.keys[i], node.items[i], key, input);
  } else {
    return in.problem(
        node, key,
        fmt::format("{} ({})",
                    node.kind == Node::Kind::Null ? "has no value" : "must be one path, or a map",
                    kInputForms));
  }
  if (input.from() == "none") input.clear_from();
  const bool plain = source_of(input.from()).kind.empty() && !input.from().empty() &&
                     input.from().find("://") == std::string::npos &&
                     input.from().find("${") == std::string::npos;
  if (plain) input.set_from(in.below_base(input.from()));
  // With --set an input of the same name may be there.
  auto& inputs = *in.spec().mutable_inputs();
  const auto known = std::ranges::find(inputs, name, &v1::InputSpec::name);
  (known == inputs.end() ? *inputs.Add() : *known) = std::move(input);
}

void read_inputs(SpecReader& in, const Node& node, const KeyRow& row) {
  if (!is_map(in, node, row)) return;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string key = fmt::format("{}.{}", row.key, shown(node.keys[i].text));
    in.place(key, node.items[i]);
    if (node.items[i].bad)
      in.spoil(key);
    else
      read_input(in, node.keys[i].text, node.items[i], key);
  }
}

// --- changes of files ----------------------------------------------------------------------------
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

// Values are any YAML. They travel as text, made by the code that also writes the changed copies.
Result<std::string> yaml_of(const Node& value) {
  patch::Document document;
  document.root = copy_to(document, value);
  auto text = patch::write_yaml(document);
  while (text && text->ends_with('\n')) text->pop_back();
  return text;
}

void read_changes(SpecReader& in, const Node& changes, const std::string& key,
                  v1::ConfigPatch& file) {
  for (std::size_t i = 0; i < changes.keys.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", key, file.changes_size());
    in.place(place, changes.keys[i]);
    if (any_bad(changes.items[i])) continue;
    auto value = yaml_of(changes.items[i]);
    if (!value) {
      in.item_problem(
          changes.items[i], place,
          fmt::format("the value of '{}': {}", shown(changes.keys[i].text), value.error().message));
      continue;
    }
    v1::ConfigChange& change = *file.add_changes();
    change.set_at(changes.keys[i].text);
    change.set_value(std::move(*value));
  }
}

// FILE: {path: value}, in the file's order.
void read_config_patch(SpecReader& in, const Node& node, const KeyRow& row) {
  if (!is_map(in, node, row)) return;
  const bool first_start = first_field(row) == "launch.patch";
  auto& files = first_start ? *in.spec().mutable_launch()->mutable_patch()
                            : *in.spec().mutable_resume()->mutable_patch();
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const Node& changes = node.items[i];
    const std::string key = fmt::format("{}[{}]", row.key, files.size());
    in.place(key, node.keys[i]);
    if (changes.bad || changes.kind == Node::Kind::Null) continue;
    if (changes.kind != Node::Kind::Map) {
      in.item_problem(
          changes, key,
          fmt::format("'{}' must be a map ({})", shown(node.keys[i].text), row.accepted));
      continue;
    }
    v1::ConfigPatch& file = *files.Add();
    file.set_file(node.keys[i].text);
    read_changes(in, changes, key, file);
  }
}

// --- schemas -------------------------------------------------------------------------------------
Schema map_of(Schema values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}
Schema text_map_schema(const KeyRow&) { return map_of(scalar_schema()); }
Schema inputs_schema(const KeyRow&) {
  return map_of(
      {{"anyOf",
        {scalar_schema(),
         {{"type", "object"},
          {"properties",
           {{"from", scalar_schema()},
            {"env", scalar_schema()},
            {"include",
             {{"anyOf", {scalar_schema(), {{"type", "array"}, {"items", scalar_schema()}}}}}}}},
          {"additionalProperties", false}}}}});
}
Schema config_patch_schema(const KeyRow&) { return map_of({{"type", {"object", "null"}}}); }

}  // namespace

using enum NullMeans;
const KeyType kTextMap = {
    .read = read_text_map, .schema = text_map_schema, .null = Absent, .map_adds = true};
const KeyType kInputs = {
    .read = read_inputs, .schema = inputs_schema, .null = Absent, .map_adds = true};
const KeyType kConfigPatch = {
    .read = read_config_patch, .schema = config_patch_schema, .null = Absent, .map_adds = true};

}  // namespace muster::spec
