#include "common/spec/read_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <ranges>
#include <utility>

#include "common/spec/field.h"
#include "common/spec/keys/key_type.h"
#include "common/spec/keys/values.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

// Returns the nearest of `known`, if no other one is equally near.
std::string_view only_nearest(std::string_view word, std::vector<std::string_view> known) {
  const std::string_view near = nearest(word, known);
  std::erase(known, near);
  const std::string_view second = nearest(word, known);
  // If two are equally near, nearest() returns the first.
  return second.empty() || nearest(word, std::array{second, near}) == near ? near : "";
}

bool is_leaf(std::string_view name) {
  return std::ranges::find(key_table(), name, [](const KeyRow& row) { return leaf(row.key); }) !=
         key_table().end();
}

std::string below(const std::string& section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

}  // namespace

void SpecReader::problem(const Node& at, std::string key, std::string message) {
  spoiled_.insert(key);
  if (problems_.size() < kProblemsMax)
    problems_.push_back({.line = at.line,
                         .column = at.column,
                         .key = std::move(key),
                         .message = std::move(message)});
}

void SpecReader::item_problem(const Node& at, std::string key, std::string message) {
  if (problems_.size() < kProblemsMax)
    problems_.push_back({.line = at.line,
                         .column = at.column,
                         .key = std::move(key),
                         .message = std::move(message)});
}

bool SpecReader::spoiled(const std::string& key) const {
  // A list that lost an element is no longer reliable as a whole.
  if (std::ranges::any_of(
          problems_, [&](const Problem& earlier) { return earlier.key.starts_with(key + "["); }))
    return true;
  // A key that seems to be missing in launch may be the misspelt one there.
  if (key == "launch.run" && spoiled_.contains("launch.script")) return true;
  // Whether start.from is needed depends on start.as.
  if (key == "start.from" && spoiled_.contains("start.as")) return true;
  for (std::string part = key;;) {
    if (spoiled_.contains(part) ||
        std::ranges::any_of(meant_, [&](const Meant& meant) { return meant.row->key == part; }))
      return true;
    const std::size_t cut = part.find_last_of(".[");
    if (cut == std::string::npos) return false;
    part.resize(cut);
  }
}

Problem SpecReader::placed(Problem problem) const {
  for (std::string part = problem.key;;) {
    if (const auto found = places_.find(part); found != places_.end()) {
      std::tie(problem.line, problem.column) = found->second;
      return problem;
    }
    const std::size_t cut = part.find_last_of(".[");
    if (part.empty()) return problem;
    part.resize(cut == std::string::npos ? 0 : cut);
  }
}

void SpecReader::read(const Node& root) {
  places_[""] = {root.line, root.column};
  if (root.kind != Node::Kind::Map) {
    problem(root, "",
            root.kind == Node::Kind::Null
                ? "the spec is empty; `muster explain` lists the keys"
                : "a spec is a map of keys (name: , engine: , launch: ...)");
    return;
  }
  section(root, "");
  read_meant();
}

void SpecReader::read_meant() {
  while (!meant_.empty()) {  // one may contain others
    for (const auto& [value, known] : std::exchange(meant_, {})) {
      const std::string key(known->key);
      const bool fresh = places_.try_emplace(key, value->line, value->column).second;
      if (value->bad) {
        spoiled_.insert(key);
      } else if (known->type == &kSection || known->type == &kStart) {
        section(*value, key);  // keys of the correctly spelt section are not read again
      } else if (fresh) {
        row(*value, *known);
      }
    }
  }
}

void SpecReader::section(const Node& node, const std::string& prefix) {
  if (node.bad || node.kind == Node::Kind::Null) return;
  if (node.kind != Node::Kind::Map) {
    std::vector<std::string_view> names;
    for (const KeyRow* known : keys_below(prefix)) names.push_back(leaf(known->key));
    problem(node, prefix, fmt::format("must be a map ({})", fmt::join(names, ", ")));
    return;
  }
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& name = node.keys[i].text;
    const Node& value = node.items[i];
    const std::string key = below(prefix, name);
    // A dot inside one key is not a path. find_key alone would take `launch.per: rank` at the top
    // level for the nested key.
    const KeyRow* known = name.find('.') == std::string::npos ? find_key(key) : nullptr;
    if (known == nullptr) {
      unknown(node.keys[i], value, prefix);
      continue;
    }
    if (!places_.try_emplace(key, value.line, value.column).second) continue;
    if (!value.bad) row(value, *known);
    if (value.bad) spoiled_.insert(key);
  }
}

void SpecReader::unknown(const Node& key, const Node& value, const std::string& section_key) {
  const std::string& name = key.text;
  const std::string full = below(section_key, name);
  // `sure` means that no other key is possible.
  const auto say = [&](std::string_view meant, bool sure) {
    if (sure)
      meant_.push_back({.value = &value, .row = find_key(meant)});
    else
      spoiled_.insert(std::string(meant));  // it may not be missing after all
    problem(key, shown(full), fmt::format("unknown key; did you mean '{}'?", meant));
  };
  if (const KeyRow* dotted = find_key(full)) {
    const std::string_view inner = std::string_view(full).substr(0, full.rfind('.'));
    meant_.push_back({.value = &value, .row = dotted});
    problem(key, shown(full),
            fmt::format("unknown key; write '{}' inside '{}:'", leaf(full), inner));
    return;
  }
  // Another tool's word for a key is matched by its meaning and not by its letters, unless it is
  // also one of muster's keys elsewhere.
  if (const KeyRow* alias = find_alias(section_key, name); alias != nullptr && !is_leaf(name)) {
    // Where other tools have a section and muster has one value, the content of the section is not
    // checked.
    const bool readable = value.kind != Node::Kind::Map || alias->type->map_adds;
    return say(alias->key, readable);
  }
  std::vector<std::string_view> here, everywhere;
  for (const KeyRow* known : keys_below(section_key)) here.push_back(leaf(known->key));
  if (const std::string_view near = nearest(name, here); !near.empty())
    return say(below(section_key, near), !only_nearest(name, here).empty());
  // The code that reads stages reports the keys that only a stage has.
  const auto leaf_of = [](const KeyRow& known) {
    return known.key.starts_with("stages.") ? std::string_view{} : leaf(known.key);
  };
  const auto leaf_count = [&](std::string_view word) {
    return std::ranges::count(key_table(), word, leaf_of);
  };
  const auto first_with = [&](std::string_view word) {
    return std::ranges::find(key_table(), word, leaf_of)->key;
  };
  if (const auto count = leaf_count(name); count > 0) return say(first_with(name), count == 1);
  for (const KeyRow& known : key_table())
    if (!leaf_of(known).empty() &&
        std::ranges::find(everywhere, leaf(known.key)) == everywhere.end())
      everywhere.push_back(leaf(known.key));
  if (const std::string_view near = nearest(name, everywhere); !near.empty())
    return say(first_with(near), leaf_count(near) == 1 && !only_nearest(name, everywhere).empty());
  problem(key, shown(full), fmt::format("unknown key ({})", fmt::join(here, ", ")));
}

void SpecReader::row(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null && row.type->null == NullMeans::Absent) return;
  if (node.kind == Node::Kind::Null && row.type->null == NullMeans::Zero)
    return Field(spec_, first_field(row)).set_number(0);
  row.type->read(*this, node, row);
}

const std::string* SpecReader::text(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Scalar) return &node.text;
  const char* what = node.kind == Node::Kind::Null   ? "has no value"
                     : node.kind == Node::Kind::List ? "must be one value, not a list"
                                                     : "must be one value, not a map";
  problem(node, std::string(row.key), fmt::format("{} ({})", what, row.accepted));
  return nullptr;
}

void SpecReader::not_accepted(const Node& node, const KeyRow& row, std::string_view value) {
  const std::string_view meant = value_meant(row.key, value);
  const std::string_view near = meant.empty() ? nearest(value, choices(row.accepted)) : meant;
  if (near.empty())
    problem(node, std::string(row.key),
            fmt::format("'{}' is not accepted ({})", shown(value), row.accepted));
  else
    problem(node, std::string(row.key),
            fmt::format("'{}' is not accepted; did you mean '{}'? ({})", shown(value), near,
                        row.accepted));
}

void SpecReader::one_or_list(const Node& node, const KeyRow& row, const std::string& item_must,
                             const std::function<void(const Node&)>& add) {
  const std::string key(row.key);
  if (node.kind == Node::Kind::Scalar) return add(node);
  if (node.kind != Node::Kind::List)
    return problem(node, key, fmt::format("must not be a map ({})", row.accepted));
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    if (item.bad) continue;
    if (item.kind == Node::Kind::Scalar)
      add(item);
    else
      item_problem(item, fmt::format("{}[{}]", key, i), item_must);
  }
}

std::string SpecReader::below_base(const std::string& path) const {
  std::string whole = (std::filesystem::path(options_.base_dir) / path).lexically_normal().string();
  if (whole.size() > 1 && whole.ends_with('/')) whole.pop_back();
  return whole;
}

Result<std::string> SpecReader::file(const std::string& path, std::size_t most) const {
  if (!options_.read_file) return fail(ErrorCode::Unsupported, "no file can be read here");
  return options_.read_file(
      (std::filesystem::path(options_.base_dir) / path).lexically_normal().string(), most);
}

}  // namespace muster::spec
