#include "common/compat/patch/lookup.h"

#include <optional>
#include <unordered_set>

namespace muster::patch {
namespace {

class Finder {
 public:
  Finder(const Document& document, std::string_view key) : document_(document), key_(key) {}

  // Returns the map's own value for the key, the last one of that name. Otherwise it follows
  // loaders: a later '<<' wins, and in a list of merges the first map wins. Each map is searched
  // once.
  std::optional<NodeId> find(NodeId id, std::size_t depth = 0) {
    const Node& map = document_.at(id);
    if (map.kind != Node::Kind::Map || depth > kDepthMax || !visited_.insert(id).second)
      return std::nullopt;
    for (std::size_t i = map.keys.size(); i-- > 0;)
      if (document_.at(map.keys[i]).text == key_) return map.items[i].node;
    for (std::size_t i = map.keys.size(); i-- > 0;) {
      const Node& key = document_.at(map.keys[i]);
      if (key.kind != Node::Kind::Plain || key.text != "<<") continue;
      if (auto found = merged(map.items[i].node, depth)) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<NodeId> merged(NodeId id, std::size_t depth) {
    if (document_.at(id).kind != Node::Kind::List) return find(id, depth + 1);
    for (const Ref& item : document_.at(id).items)
      if (auto found = find(item.node, depth + 1)) return found;
    return std::nullopt;
  }

  const Document& document_;
  std::string_view key_;
  std::unordered_set<NodeId> visited_;
};

}  // namespace

const Node* value_at(const Document& document, std::span<const Step> steps) {
  if (document.nodes.empty()) return nullptr;
  NodeId at = document.root;
  for (const Step& step : steps) {
    if (step.kind != Step::Kind::Key) return nullptr;
    const auto next = Finder(document, step.name).find(at);
    if (!next) return nullptr;
    at = *next;
  }
  return &document.at(at);
}

}  // namespace muster::patch
