#include "common/spec/schema.h"

#include "common/spec/yaml_tree.h"

namespace muster::spec {
namespace {

constexpr const char* kDialect = "https://json-schema.org/draft/2020-12/schema";

Schema to_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::Null: return nullptr;
    case Node::Kind::Scalar: {
      Schema value = node.quoted ? Schema() : Schema::parse(node.text, nullptr, false);
      return node.quoted || value.is_discarded() ? Schema(node.text) : value;
    }
    case Node::Kind::List: {
      Schema list = Schema::array();
      for (const Node& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case Node::Kind::Map: {
      Schema map = Schema::object();
      for (std::size_t i = 0; i < node.keys.size(); ++i)
        map[node.keys[i].text] = to_json(node.items[i]);
      return map;
    }
  }
  return nullptr;
}

Schema schema_of(const KeyRow& row) {
  Schema schema = row.type->schema(row);
  if (row.type->null != NullMeans::Nothing && schema.is_object())
    schema = {{"anyOf", {std::move(schema), {{"type", "null"}}}}};
  Schema described = {{"description", row.help}};
  if (!row.fallback.empty() && !row.type->words_only) described["default"] = default_of(row);
  if (schema.is_object()) described.update(schema);
  return described;
}

// A stage has its own two keys, and those of the top level but two.
Schema schema_of_stage() {
  Schema stage = schema_of_section("");
  stage["properties"].erase("name");
  stage["properties"].erase("stages");
  stage["properties"].update(schema_of_section("stages.NAME")["properties"]);
  return stage;
}

}  // namespace

Schema default_of(const KeyRow& row) { return to_json(read_tree(row.fallback, false).root); }

Schema schema_of_section(std::string_view section) {
  Schema properties = Schema::object();
  for (const KeyRow* row : keys_below(section))
    properties[std::string(leaf(row->key))] = schema_of(*row);
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

std::string json_schema() {
  Schema schema = {{"$schema", kDialect}, {"title", "muster job spec"}};
  schema.update(schema_of_section(""));
  schema["required"] = {"name"};
  schema["$defs"] = {{"stage", schema_of_stage()}};
  return schema.dump(2) + "\n";
}

}  // namespace muster::spec
