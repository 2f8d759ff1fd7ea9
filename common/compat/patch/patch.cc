#include "common/compat/patch/patch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/compat/patch/path.h"
#include "common/engine/ranktable/words.h"
#include "common/text/words.h"

namespace muster::patch {
namespace {

using ranktable::shown;

constexpr std::size_t kNamesScanned = 2000, kNameBytesMost = 128;  // for the nearest name
constexpr std::size_t kNamesShown = 8;

std::string_view kind_word(const Node& node) {
  switch (node.kind) {
    case Node::Kind::Null: return "empty";
    case Node::Kind::Plain:
    case Node::Kind::Quoted: return "one value";
    case Node::Kind::List: return "a list";
    case Node::Kind::Map: return "a map";
  }
  return "";
}

// "; nearest: 'x'", or a list of the existing names.
std::string nearest_of(std::string_view word, std::vector<std::string_view> known) {
  std::erase_if(known, [](std::string_view name) { return name.size() > kNameBytesMost; });
  if (known.size() > kNamesScanned) known.resize(kNamesScanned);
  if (const std::string_view near = nearest(word, known); !near.empty())
    return fmt::format("; nearest: '{}'", shown(near));
  if (known.empty()) return "";
  std::vector<std::string> names;
  for (const std::string_view name : known) {
    if (names.size() == kNamesShown)
      return fmt::format("; there are {} and others", fmt::join(names, ", "));
    names.push_back(fmt::format("'{}'", shown(name)));
  }
  return fmt::format("; there {} {}", names.size() == 1 ? "is" : "are", fmt::join(names, ", "));
}

class Patcher {
 public:
  explicit Patcher(Document document) : document_(std::move(document)) {}

  Result<void> change(const Change& change) {
    auto steps = parse_path(change.at);
    if (!steps) return fail(std::move(steps.error()));
    if (change.value.size() > kValueBytesMax)
      return no(
          fmt::format("its value has {} bytes, at most {}", change.value.size(), kValueBytesMax));
    auto value = read_yaml(change.value);
    if (!value) return no(fmt::format("its value: {}", value.error().message));
    NodeId at = document_.root;
    for (std::size_t i = 0; i + 1 < steps->size(); ++i) {
      const auto next = child(at, *steps, i);
      if (!next) return fail(next.error());
      at = *next;
    }
    if (document_.nodes.size() + value->nodes.size() > 2 * kNodesMax)
      return no("the file gets too many values");
    return set(at, *steps, *value);
  }

  Document& document() { return document_; }
  // One sentence for each key that was added although its map has a key of nearly the same name.
  [[nodiscard]] const std::vector<std::string>& near_misses() const { return near_misses_; }

 private:
  static std::unexpected<Error> no(std::string why) {
    return fail(ErrorCode::InvalidArgument, std::move(why));
  }

  static std::string whose(const std::vector<Step>& steps, std::size_t count) {
    return count == 0 ? "the file" : fmt::format("'{}'", shown(path_text(steps, count)));
  }

  // The index of the key among the map's own keys; the last one of that name.
  [[nodiscard]] std::optional<std::size_t> own(const Node& map, std::string_view key) const {
    for (std::size_t i = map.keys.size(); i-- > 0;)
      if (document_.at(map.keys[i]).text == key) return i;
    return std::nullopt;
  }

  // Maps that were already searched for one key, with the value that was found in each.
  using Visited = std::unordered_map<NodeId, std::optional<NodeId>>;

  // Searches through merges, too: a later '<<' wins, and in a list of merges the first map wins.
  // Each map is searched once, regardless of how often it is merged.
  [[nodiscard]] std::optional<NodeId> find(NodeId id, std::string_view key, Visited& visited,
                                           std::size_t depth = 0) const {
    const Node& map = document_.at(id);
    if (map.kind != Node::Kind::Map || depth > kDepthMax) return std::nullopt;
    if (const auto [known, fresh] = visited.try_emplace(id); !fresh) return known->second;
    std::optional<NodeId> found;
    if (const auto place = own(map, key)) found = map.items[*place].node;
    for (std::size_t i = map.keys.size(); i-- > 0 && !found;) {
      if (!is_merge(map.keys[i])) continue;
      const Node& merged = document_.at(map.items[i].node);
      found = find(map.items[i].node, key, visited, depth + 1);
      if (merged.kind != Node::Kind::List) continue;
      for (std::size_t at = 0; at < merged.items.size() && !found; ++at)
        found = find(merged.items[at].node, key, visited, depth + 1);
    }
    return visited[id] = found;
  }

  [[nodiscard]] bool is_merge(NodeId key) const {
    return document_.at(key).kind == Node::Kind::Plain && document_.at(key).text == "<<";
  }

  void names_of(NodeId id, std::vector<std::string_view>& names,
                std::unordered_set<NodeId>& visited) const {
    const Node& map = document_.at(id);
    if (map.kind != Node::Kind::Map || visited.size() > kDepthMax || !visited.insert(id).second)
      return;
    for (std::size_t i = 0; i < map.keys.size() && names.size() <= kNamesScanned; ++i) {
      if (!is_merge(map.keys[i])) {
        names.push_back(document_.at(map.keys[i]).text);
        continue;
      }
      names_of(map.items[i].node, names, visited);
      if (document_.at(map.items[i].node).kind == Node::Kind::List)
        for (const Ref item : document_.at(map.items[i].node).items)
          names_of(item.node, names, visited);
    }
  }

  // The index of the list item that step `i` names.
  [[nodiscard]] Result<std::size_t> item(NodeId id, const std::vector<Step>& steps,
                                         std::size_t i) const {
    const Node& list = document_.at(id);
    const Step& step = steps[i];
    if (list.kind != Node::Kind::List)
      return no(fmt::format("{} is {}, not a list", whose(steps, i), kind_word(list)));
    if (step.kind == Step::Kind::Index) {
      if (step.index < list.items.size()) return step.index;
      return no(fmt::format("{} has {} item{}, counted from 0", whose(steps, i), list.items.size(),
                            list.items.size() == 1 ? "" : "s"));
    }
    std::optional<std::size_t> found;
    std::vector<std::string_view> names;
    Visited visited;
    for (std::size_t at = 0; at < list.items.size(); ++at) {
      const auto value = find(list.items[at].node, step.name, visited);
      if (!value) continue;
      const Node& node = document_.at(*value);
      if (node.kind != Node::Kind::Plain && node.kind != Node::Kind::Quoted) continue;
      if (names.size() <= kNamesScanned) names.push_back(node.text);
      if (node.text != step.value) continue;
      if (found)
        return no(
            fmt::format("{} has more than one item with {}: {}; say which by its number, [{}]",
                        whose(steps, i), shown(step.name), shown(step.value), *found));
      found = at;
    }
    if (found) return *found;
    return no(fmt::format("{} has no item with {}: {}{}", whose(steps, i), shown(step.name),
                          shown(step.value), nearest_of(step.value, std::move(names))));
  }

  [[nodiscard]] Result<NodeId> child(NodeId id, const std::vector<Step>& steps,
                                     std::size_t i) const {
    const Step& step = steps[i];
    if (step.kind != Step::Kind::Key) {
      const auto place = item(id, steps, i);
      if (!place) return fail(place.error());
      return document_.at(id).items[*place].node;
    }
    const Node& node = document_.at(id);
    if (node.kind != Node::Kind::Map) return no(not_a_map(id, steps, i));
    Visited visited;
    if (const auto found = find(id, step.name, visited)) return *found;
    std::vector<std::string_view> names;
    std::unordered_set<NodeId> met;
    names_of(id, names, met);
    return no(fmt::format("{} no '{}'{}",
                          i == 0 ? "there is" : fmt::format("{} has", whose(steps, i)),
                          shown(step.name), nearest_of(step.name, std::move(names))));
  }

  [[nodiscard]] std::string not_a_map(NodeId id, const std::vector<Step>& steps,
                                      std::size_t i) const {
    const Node& node = document_.at(id);
    return fmt::format("{} is {}, not a map{}", whose(steps, i), kind_word(node),
                       node.kind == Node::Kind::List ? "; say which item, [0] or [type=NAME]" : "");
  }

  Result<void> set(NodeId parent, const std::vector<Step>& steps, const Document& value) {
    const std::size_t last = steps.size() - 1;
    const Step& step = steps[last];
    if (step.kind != Step::Kind::Key) {
      const auto place = item(parent, steps, last);
      if (!place) return fail(place.error());
      put(parent, *place, value);
      return {};
    }
    // a section without content
    if (document_.at(parent).kind == Node::Kind::Null) document_.at(parent).kind = Node::Kind::Map;
    if (document_.at(parent).kind != Node::Kind::Map) return no(not_a_map(parent, steps, last));
    if (const auto place = own(document_.at(parent), step.name)) {
      put(parent, *place, value);
      return {};
    }
    note_near_miss(parent, steps);
    const NodeId key = document_.add(
        {.kind = plain_key(step.name) ? Node::Kind::Plain : Node::Kind::Quoted, .text = step.name});
    const NodeId fresh = copied(value);  // references that at() returned before are invalid now
    document_.at(parent).keys.push_back(key);
    document_.at(parent).items.push_back({.node = fresh});
    return {};
  }

  void note_near_miss(NodeId parent, const std::vector<Step>& steps) {
    const std::string& name = steps.back().name;
    Visited visited;
    if (find(parent, name, visited)) return;  // merged into the map: it gets its own value
    std::vector<std::string_view> names;
    std::unordered_set<NodeId> met;
    names_of(parent, names, met);
    std::erase_if(names, [](std::string_view one) { return one.size() > kNameBytesMost; });
    if (names.size() > kNamesScanned) names.resize(kNamesScanned);
    if (const std::string_view near = nearest(name, names); !near.empty())
      near_misses_.push_back(fmt::format("'{}' is not there, and is added; did you mean '{}'?",
                                         shown(path_text(steps, steps.size())), shown(near)));
  }

  static bool plain_key(std::string_view text) {
    // special words in YAML 1.1
    constexpr auto kOtherThanText = std::to_array<std::string_view>(
        {"y", "n", "yes", "no", "on", "off", "true", "false", "null"});
    std::string small(text);
    std::ranges::transform(small, small.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::ranges::find(kOtherThanText, small) != kOtherThanText.end()) return false;
    return (std::isalpha(static_cast<unsigned char>(text.front())) != 0 || text.front() == '_') &&
           std::ranges::all_of(text, [](char c) {
             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-' || c == '.';
           });
  }

  // Replaces the item. An anchored value keeps its anchor, so that its aliases follow the change.
  // An alias is replaced by its own value.
  void put(NodeId parent, std::size_t place, const Document& value) {
    const Ref old = document_.at(parent).items[place];
    const NodeId fresh = copied(value);
    if (old.alias || document_.at(old.node).anchor.empty()) {
      document_.at(parent).items[place] = {.node = fresh};
      return;
    }
    Node copy = document_.at(fresh);
    copy.anchor = document_.at(old.node).anchor;
    document_.at(old.node) = std::move(copy);
  }

  NodeId copied(const Document& value) {
    const auto base = static_cast<NodeId>(document_.nodes.size());
    for (Node node : value.nodes) {
      for (Ref& item : node.items) item.node += base;
      for (NodeId& key : node.keys) key += base;
      document_.add(std::move(node));
    }
    return base + value.root;
  }

  Document document_;
  std::vector<std::string> near_misses_;
};

// MindFormers' configurations include other files by a path relative to their own directory, and
// the copy is in another directory.
void fix_includes(Document& document, std::string_view name) {
  const std::size_t cut = name.rfind('/');
  if (cut == std::string_view::npos || document.at(document.root).kind != Node::Kind::Map) return;
  const auto fix = [&](NodeId id) {
    Node& node = document.at(id);
    if ((node.kind != Node::Kind::Plain && node.kind != Node::Kind::Quoted) || node.text.empty() ||
        node.text.starts_with('/'))
      return;
    node.kind = Node::Kind::Quoted;
    node.text = fmt::format("{}/{}", name.substr(0, cut), node.text);
  };
  const Node root = document.at(document.root);
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    if (document.at(root.keys[i]).text != "base_config") continue;
    fix(root.items[i].node);
    if (document.at(root.items[i].node).kind == Node::Kind::List)
      for (const Ref item : std::vector<Ref>(document.at(root.items[i].node).items)) fix(item.node);
  }
}

}  // namespace

std::optional<Format> format_of(std::string_view name) {
  if (name.ends_with(".yaml") || name.ends_with(".yml")) return Format::Yaml;
  if (name.ends_with(".json")) return Format::Json;
  return std::nullopt;
}

Result<std::string> changed_file(std::string_view name, std::string_view text,
                                 std::span<const Change> changes,
                                 std::vector<std::string>* near_misses) {
  const auto about = [&](std::string_view doing, const std::string& why) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{} '{}': {}", doing, shown_path(name), why));
  };
  const auto format = format_of(name);
  if (!format) return about("changing", "only .yaml, .yml and .json files are");
  if (text.size() > kFileBytesMax)
    return about("changing",
                 fmt::format("it has {} bytes, at most {}", text.size(), kFileBytesMax));
  auto document = read(*format, text);
  if (!document) return about("changing", document.error().message);
  Patcher patcher(std::move(*document));
  for (const Change& change : changes)
    if (auto done = patcher.change(change); !done)
      return about(fmt::format("changing '{}' of", shown(change.at)), done.error().message);
  if (near_misses != nullptr) *near_misses = patcher.near_misses();
  if (*format == Format::Yaml) fix_includes(patcher.document(), name);
  auto written = write(*format, patcher.document());
  if (!written) return about("changing", written.error().message);
  return written;
}

}  // namespace muster::patch
