#include <fmt/format.h>

#include <algorithm>

#include "common/spec/keys/key_type.h"
#include "common/spec/keys/values.h"
#include "common/spec/read_spec.h"
#include "common/text/words.h"

namespace muster::spec {
namespace {

constexpr std::string_view kOfStage = "stages.";

// Splits "a.b.c" into a, b, c. What follows a map of free names (labels, runtime.env) is one name,
// with its dots. A stage has the same keys below it.
std::vector<std::string> path_of(std::string_view key) {
  std::vector<std::string> path;
  if (const std::size_t dot = key.find('.', kOfStage.size());
      key.starts_with(kOfStage) && dot != std::string_view::npos) {
    path = path_of(key.substr(dot + 1));
    path.insert(path.begin(),
                {"stages", std::string(key.substr(kOfStage.size(), dot - kOfStage.size()))});
    return path;
  }
  std::size_t at = 0;
  while (true) {
    const std::size_t dot = key.find('.', at);
    path.emplace_back(key.substr(at, dot == std::string_view::npos ? dot : dot - at));
    if (dot == std::string_view::npos) return path;
    at = dot + 1;
    const KeyRow* row = find_key(key.substr(0, dot));
    if (row != nullptr && row->type == &kTextMap) {
      path.emplace_back(key.substr(at));
      return path;
    }
  }
}

void put(Node& root, const std::vector<std::string>& path, Node value) {
  Node* node = &root;
  for (const std::string& name : path) {
    if (node->kind != Node::Kind::Map)
      *node = Node{.kind = Node::Kind::Map, .line = node->line, .column = node->column};
    node = &node->at(name);
  }
  *node = std::move(value);
}

// Removes the other key of a pair with one meaning: a spec has either code.from or code.at.
void drop_other(Node& root, const std::vector<std::string>& path) {
  if (path.size() < 2 || path[path.size() - 2] != "code" ||
      (path.back() != "at" && path.back() != "from"))
    return;
  if (path.size() != 2 && !(path.size() == 4 && path[0] == "stages")) return;
  Node* node = &root;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) node = &node->at(path[i]);
  const std::string_view other = path.back() == "at" ? "from" : "at";
  const auto found = std::ranges::find(node->keys, other, &Node::text);
  if (found == node->keys.end()) return;
  node->items.erase(node->items.begin() + (found - node->keys.begin()));
  node->keys.erase(found);
}

// Without this check an override would create a stage that does not exist, with all that it
// inherits.
std::string stage_missing(const Node& root, const std::vector<std::string>& path) {
  if (path.size() < 2 || path[0] != "stages") return {};
  const Node* stages = root.kind == Node::Kind::Map ? root.get("stages") : nullptr;
  std::vector<std::string_view> names;
  if (stages != nullptr && stages->kind == Node::Kind::Map)
    for (const Node& key : stages->keys) names.push_back(key.text);
  if (std::ranges::find(names, path[1]) != names.end()) return {};
  const std::string_view near = nearest(path[1], names);
  return fmt::format("there is no stage '{}'{}", shown(path[1]),
                     near.empty() ? "" : fmt::format("; did you mean '{}'?", shown(near)));
}

}  // namespace

void apply_overrides(Node& root, const ParseOptions& options, std::vector<Problem>& problems) {
  for (const auto& [key, text] : options.set) {
    const auto path = path_of(key);
    bool named = true;
    for (const std::string& name : path) named = named && !name.empty();
    if (!named || path.size() > kDepthMax) {
      problems.push_back(
          {.key = "--set",
           .message = fmt::format("'{}' is not the name of a key (KEY.KEY=VALUE)", shown(key))});
      continue;
    }
    if (std::string missing = stage_missing(root, path); !missing.empty()) {
      problems.push_back(
          {.key = fmt::format("--set {}", shown(key)), .message = std::move(missing)});
      continue;
    }
    Tree value = read_tree(text, false);
    for (Problem& problem : value.problems)
      problems.push_back({.key = shown(key), .message = std::move(problem.message)});
    if (!value.problems.empty()) continue;
    put(root, path, std::move(value.root));
    drop_other(root, path);
  }
  for (const auto& [name, text] : options.env)
    put(root, {"runtime", "env", name},
        Node{.kind = Node::Kind::Scalar, .text = text, .quoted = true});
}

}  // namespace muster::spec
