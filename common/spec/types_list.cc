// The types of keys with several values.
#include <fmt/format.h>

#include <functional>
#include <limits>

#include "common/spec/field.h"
#include "common/spec/keys/key_type.h"
#include "common/spec/keys/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/read_spec.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

std::string element(std::string_view key, std::size_t number) {
  return fmt::format("{}[{}]", key, number);
}

// complete() names an element by the field, which may have another name than the key.
void place_next(SpecReader& in, const Node& at, const KeyRow& row) {
  const std::string_view path = first_field(row);
  const auto number = static_cast<std::size_t>(Field(in.spec(), path).size());
  in.place(element(row.key, number), at);
  if (path != row.key) in.place(element(path, number), at);
}

// --- words of a command line ---------------------------------------------------------------------
// Splits a text like a shell's words, takes a list unchanged, and turns a map into `--key value`.
// Each word has the position where it comes from.
class WordsReader {
 public:
  WordsReader(SpecReader& in, const KeyRow& row) : in_(in), row_(row), key_(row.key) {}

  void text(const Node& node) {
    auto split = split_words(node.text);
    if (!split) return in_.problem(node, key_, split.error().message);
    if (split->size() > kWordsMax)
      return in_.problem(node, key_,
                         fmt::format("has {} words, at most {}", split->size(), kWordsMax));
    for (std::string& word : *split) add(node, std::move(word));
  }

  void list(const Node& node) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const Node& item = node.items[i];
      if (item.bad) continue;
      if (item.kind == Node::Kind::Scalar)
        add(item, item.text);
      else
        in_.item_problem(item, element(key_, i),
                         item.kind == Node::Kind::Null ? "has no value; \"\" is the empty argument"
                                                       : "must be one text");
    }
  }

  void map(const Node& node) {
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const Node& value = node.items[i];
      if (value.kind != Node::Kind::List) {
        option(node.keys[i].text, value);
        continue;
      }
      for (const Node& item : value.items) option(node.keys[i].text, item);
    }
  }

 private:
  void add(const Node& at, std::string word) {
    in_.place(element(key_, count_++), at);
    Field(in_.spec(), first_field(row_)).add_text(std::move(word));
  }

  void option(const std::string& name, const Node& value) {
    const std::string flag = name.starts_with('-') ? name : "--" + name;
    if (value.bad || value.kind == Node::Kind::Null) return;
    if (value.kind != Node::Kind::Scalar)
      return in_.problem(value, fmt::format("{}.{}", key_, shown(name)),
                         "must be one value or a list of values (true | false | null | text)");
    if (!value.quoted && value.text == "false") return;
    add(value, flag);
    if (value.quoted || value.text != "true") add(value, value.text);
  }

  SpecReader& in_;
  const KeyRow& row_;
  std::string key_;
  std::size_t count_ = 0;
};

void read_words(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map)
    return in.problem(node, std::string(row.key),
                      fmt::format("must not be a map ({})", row.accepted));
  WordsReader words(in, row);
  if (node.kind == Node::Kind::List)
    words.list(node);
  else
    words.text(node);
}

void read_words_or_map(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Map)
    WordsReader(in, row).map(node);
  else
    read_words(in, node, row);
}

// --- texts ---------------------------------------------------------------------------------------
// These are whole texts for a shell, so nothing is split here.
void read_texts(SpecReader& in, const Node& node, const KeyRow& row) {
  in.one_or_list(node, row, "must be one text", [&](const Node& at) {
    place_next(in, at, row);
    Field(in.spec(), first_field(row)).add_text(at.text);
  });
}

void read_jobs(SpecReader& in, const Node& node, const KeyRow& row) {
  in.one_or_list(node, row, fmt::format("must be one job ({})", row.accepted), [&](const Node& at) {
    if (const Source source = source_of(at.text); source.kind == "stage")
      return in.item_problem(
          at, std::string(row.key),
          fmt::format("'{}': a stage of this spec is named by 'after' of the stage that comes "
                      "behind it (stages: {{NAME: {{after: {}}}}})",
                      shown(at.text), shown(source.name)));
    place_next(in, at, row);
    Field(in.spec(), first_field(row)).add_text(at.text);
  });
}

// Reads the elements of a list. `add` gets each value that is no list and no map, and its key.
void read_list(SpecReader& in, const Node& node, const KeyRow& row, const char* item_must,
               const std::function<void(const Node&, const std::string&)>& add) {
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    place_next(in, item, row);
    if (item.bad) continue;
    if (item.kind == Node::Kind::Scalar)
      add(item, element(row.key, i));
    else
      in.item_problem(item, element(row.key, i), item_must);
  }
}

void read_node_names(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind != Node::Kind::List)
    return in.problem(node, std::string(row.key), fmt::format("must be a list ({})", row.accepted));
  read_list(in, node, row, "must be the name of a node", [&](const Node& item, const std::string&) {
    Field(in.spec(), first_field(row)).add_text(item.text);
  });
}

// --- numbers -------------------------------------------------------------------------------------
void read_numbers(SpecReader& in, const Node& node, const KeyRow& row, const char* item_must,
                  std::uint64_t most) {
  read_list(in, node, row, item_must, [&](const Node& item, const std::string& key) {
    if (auto number = parse_number(item.text, 0, most))
      Field(in.spec(), first_field(row)).add_number(*number);
    else
      in.item_problem(item, key, number.error().message);
  });
}

void read_ranks(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind != Node::Kind::List || node.items.empty())
    return in.problem(node, std::string(row.key),
                      fmt::format("must be a list of ranks ({})", row.accepted));
  read_numbers(in, node, row, "must be the number of a rank",
               std::numeric_limits<std::uint32_t>::max());
}

// The first field of the row has the devices' numbers, the second one how many there are.
void read_devices(SpecReader& in, const Node& node, const KeyRow& row) {
  const std::string key(row.key);
  constexpr std::uint64_t kDeviceMost = 1023;
  if (node.kind == Node::Kind::List) {
    if (node.items.empty())
      return in.problem(node, key, fmt::format("is an empty list ({})", row.accepted));
    return read_numbers(in, node, row, "must be the number of a device (0..1023)", kDeviceMost);
  }
  const std::string* value = in.text(node, row);
  if (value == nullptr) return;
  v1::ResourceSpec& resources = *in.spec().mutable_resources();
  if (value->starts_with('[')) {
    if (auto range = parse_device_range(*value))
      for (const std::uint32_t device : *range) resources.add_device_ids(device);
    else
      in.problem(node, key, range.error().message);
  } else if (auto number = parse_number(*value, 1, kDeviceMost + 1)) {
    resources.set_devices(static_cast<std::uint32_t>(*number));
  } else if (!value->empty() && value->find_first_not_of("0123456789") == std::string::npos) {
    in.problem(node, key, number.error().message);
  } else {
    in.problem(node, key,
               fmt::format("'{}' is neither a number nor a range of devices ({})", shown(*value),
                           row.accepted));
  }
}

// --- mounts --------------------------------------------------------------------------------------
constexpr const char* kMountForms = "SRC[:DST][:ro] | {source: , target: , read_only: }";

bool read_mount_text(SpecReader& in, const Node& node, const std::string& key,
                     v1::MountSpec& mount) {
  std::vector<std::string> parts = {""};
  for (const char c : node.text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() > 1 && (parts.back() == "ro" || parts.back() == "rw")) {
    mount.set_read_only(parts.back() == "ro");
    parts.pop_back();
  }
  if (parts.size() > 2) {
    in.item_problem(node, key,
                    fmt::format("'{}' is not accepted ({})", shown(node.text), kMountForms));
    return false;
  }
  mount.set_source(parts.front());
  mount.set_target(parts.back());
  return true;
}

// Without a target the path is the same as on the node.
bool read_mount_map(SpecReader& in, const Node& node, const std::string& key,
                    v1::MountSpec& mount) {
  const auto wrong = [&](const Node& at, std::string message) {
    in.item_problem(at, key, std::move(message));
    return false;
  };
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& name = node.keys[i].text;
    const Node& value = node.items[i];
    if (value.bad) continue;
    const bool flag = name == "read_only";
    if (!flag && name != "source" && name != "target")
      return wrong(node.keys[i],
                   fmt::format("unknown key '{}' (source, target, read_only)", shown(name)));
    if (value.kind != Node::Kind::Scalar || (flag && value.text != "true" && value.text != "false"))
      return wrong(value, fmt::format("{} must be {}", name, flag ? "true or false" : "one path"));
    if (flag)
      mount.set_read_only(value.text == "true");
    else if (name == "source")
      mount.set_source(value.text);
    else
      mount.set_target(value.text);
  }
  if (mount.source().empty()) return wrong(node, fmt::format("has no source ({})", kMountForms));
  if (mount.target().empty()) mount.set_target(mount.source());
  return true;
}

void read_mounts(SpecReader& in, const Node& node, const KeyRow& row) {
  if (node.kind != Node::Kind::List)
    return in.problem(node, std::string(row.key), fmt::format("must be a list ({})", row.accepted));
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    place_next(in, item, row);
    if (item.bad) continue;
    const std::string key = element(row.key, i);
    v1::MountSpec mount;
    bool sound = false;
    if (item.kind == Node::Kind::Scalar)
      sound = read_mount_text(in, item, key, mount);
    else if (item.kind == Node::Kind::Map)
      sound = read_mount_map(in, item, key, mount);
    else
      in.item_problem(item, key, fmt::format("is no mount ({})", kMountForms));
    if (sound) *in.spec().mutable_runtime()->add_mounts() = std::move(mount);
  }
}

// --- schemas -------------------------------------------------------------------------------------
Schema list_of(Schema items) { return {{"type", "array"}, {"items", std::move(items)}}; }
Schema one_of(std::initializer_list<Schema> forms) { return {{"anyOf", Schema(forms)}}; }

Schema texts_schema(const KeyRow&) { return one_of({scalar_schema(), list_of(scalar_schema())}); }
Schema words_or_map_schema(const KeyRow&) {
  const Schema value = {{"type", {"string", "number", "boolean", "null"}}};
  return one_of({scalar_schema(),
                 list_of(scalar_schema()),
                 {{"type", "object"}, {"additionalProperties", one_of({value, list_of(value)})}}});
}
Schema node_names_schema(const KeyRow&) { return list_of(scalar_schema()); }
Schema ranks_schema(const KeyRow&) {
  Schema schema = list_of(number_between(0, std::numeric_limits<std::uint32_t>::max()));
  schema["minItems"] = 1;
  return schema;
}
Schema devices_schema(const KeyRow&) {
  Schema numbers = list_of(number_between(0, 1023));
  numbers["minItems"] = 1;
  return one_of({{{"type", "integer"}, {"minimum", 1}, {"maximum", 1024}},
                 {{"type", "string"}, {"pattern", "^([0-9]+|[\\[(] *[0-9]+ *, *[0-9]+ *[\\])])$"}},
                 numbers});
}
Schema mounts_schema(const KeyRow&) {
  return list_of(one_of({{{"type", "string"}},
                         {{"type", "object"},
                          {"properties",
                           {{"source", scalar_schema()},
                            {"target", scalar_schema()},
                            {"read_only", {{"enum", {true, false, "true", "false"}}}}}},
                          {"required", {"source"}},
                          {"additionalProperties", false}}}));
}

}  // namespace

using enum NullMeans;
const KeyType kWords = {.read = read_words, .schema = texts_schema, .null = Absent};
const KeyType kWordsOrMap = {
    .read = read_words_or_map, .schema = words_or_map_schema, .null = Absent};
const KeyType kTexts = {.read = read_texts, .schema = texts_schema, .null = Absent};
const KeyType kJobs = {.read = read_jobs, .schema = texts_schema, .null = Absent};
const KeyType kNodeNames = {.read = read_node_names, .schema = node_names_schema, .null = Absent};
const KeyType kRanks = {.read = read_ranks, .schema = ranks_schema, .null = Absent};
const KeyType kDevices = {.read = read_devices, .schema = devices_schema};
const KeyType kMounts = {.read = read_mounts, .schema = mounts_schema, .null = Absent};

}  // namespace muster::spec
