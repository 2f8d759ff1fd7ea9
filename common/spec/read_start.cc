// Reads start and inputs. complete_start.h defines which names are valid.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "common/spec/names.h"
#include "common/spec/read_spec.h"
#include "common/spec/values.h"

namespace muster::spec {

void SpecReader::start(const Node& node) {
  section(node, "start");
  if (node.kind != Node::Kind::Map || node.get("from") != nullptr || spoiled("start.from")) return;
  for (const char* key : {"as", "step"})
    if (const Node* value = node.get(key); value != nullptr && !value->bad)
      problem(
          *value, fmt::format("start.{}", key),
          fmt::format("says nothing without start.from ({})", find_key("start.from")->accepted));
}

void SpecReader::start_from(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  const std::string* value = text(node, row);
  if (value == nullptr || *value == "none") return;
  if (value->empty())
    return problem(node, std::string(row.key), fmt::format("is empty ({})", row.accepted));
  const bool word = may_be_job(*value);
  if (word && is_stage_name(*value))
    return problem(
        node, std::string(row.key),
        fmt::format(
            "'{0}' is not accepted; a job is written job:{0}, a stage of this spec stage:{0} ({1})",
            *value, row.accepted));
  if (word)
    return problem(
        node, std::string(row.key),
        fmt::format("'{0}' is not accepted; a job is written job:{0} ({1})", *value, row.accepted));
  spec_.mutable_start()->set_from(*value);
}

void SpecReader::start_as(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr) return;
  // These words are in the order of StartAs.
  constexpr auto kWords =
      std::to_array<std::string_view>({"weights", "resume", "resume-or-scratch"});
  const auto found = std::ranges::find(kWords, *value);
  if (found == kWords.end()) return not_accepted(node, row, *value);
  spec_.mutable_start()->set_as(static_cast<v1::StartAs>(found - kWords.begin() + 1));
}

void SpecReader::start_step(const Node& node, const KeyRow& row) {
  const std::string* value = text(node, row);
  if (value == nullptr || *value == "latest") return;
  if (auto number = parse_number(*value, 0, std::numeric_limits<std::int32_t>::max()))
    spec_.mutable_start()->set_step(static_cast<std::int64_t>(*number));
  else
    problem(node, std::string(row.key),
            fmt::format("'{}' is not a step ({})", shown(*value), row.accepted));
}

void SpecReader::inputs(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null) return;
  if (node.kind != Node::Kind::Map)
    return problem(node, std::string(row.key), fmt::format("must be a map ({})", row.accepted));
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string key = fmt::format("inputs.{}", shown(node.keys[i].text));
    places_[key] = {node.items[i].line, node.items[i].column};
    if (node.items[i].bad)
      spoiled_.insert(key);
    else
      input(node.keys[i].text, node.items[i], key);
  }
}

// Reads a path, or {from: , env: }.
void SpecReader::input(const std::string& name, const Node& node, const std::string& key) {
  constexpr const char* kForms = "PATH | {from: PATH, env: VARIABLE}";
  v1::InputSpec input;
  input.set_name(name);
  if (node.kind == Node::Kind::Scalar) {
    input.set_from(node.text);
  } else if (node.kind == Node::Kind::Map) {
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& part = node.keys[i].text;
      const Node& value = node.items[i];
      const std::string at = fmt::format("{}.{}", key, shown(part));
      places_[at] = {value.line, value.column};
      if (value.bad) {
        spoiled_.insert(key);
      } else if (part == "to" || part == "pass" || part == "unpack" || part == "scope") {
        problem(node.keys[i], at,
                "is known but not in this release: files are used in place; leave it out");
      } else if (part != "from" && part != "env") {
        problem(node.keys[i], at, "unknown key (from, env)");
      } else if (value.kind != Node::Kind::Scalar) {
        problem(value, at,
                value.kind == Node::Kind::Null ? fmt::format("has no value ({})", kForms)
                                               : "must be one text");
        spoiled_.insert(key);
      } else if (part == "from") {
        input.set_from(value.text);
      } else {
        input.set_env(value.text);
      }
    }
  } else {
    return problem(
        node, key,
        fmt::format("{} ({})",
                    node.kind == Node::Kind::Null ? "has no value" : "must be one path, or a map",
                    kForms));
  }
  if (input.from() == "none") input.clear_from();
  const bool plain = source_of(input.from()).kind.empty() && !input.from().empty() &&
                     input.from().find("://") == std::string::npos &&
                     input.from().find("${") == std::string::npos;
  if (plain) {
    std::string path =
        (std::filesystem::path(options_.base_dir) / input.from()).lexically_normal().string();
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    input.set_from(std::move(path));
  }
  *spec_.add_inputs() = std::move(input);
}

// stages.cc reads the keys below a stage's name. Here an empty chain counts as no chain.
void SpecReader::no_stages(const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::Null || (node.kind == Node::Kind::Map && node.keys.empty())) return;
  problem(node, std::string(row.key), fmt::format("must be a map ({})", row.accepted));
}

}  // namespace muster::spec
