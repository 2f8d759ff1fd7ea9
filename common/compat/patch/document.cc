#include "common/compat/patch/document.h"

#include <algorithm>
#include <unordered_map>

#include "common/base/utf8.h"

namespace muster::patch {
namespace {

class Comparison {
 public:
  Comparison(const Document& a, const Document& b) : a_(a), b_(b) {}

  bool same(NodeId one, NodeId other, std::size_t depth) {
    if (depth > kDepthWritten) return false;
    const auto [known, fresh] = met_.try_emplace(one, other);
    if (!fresh) return known->second == other;
    const Node& a = a_.at(one);
    const Node& b = b_.at(other);
    if (a.kind != b.kind || a.text != b.text || a.tag != b.tag ||
        a.items.size() != b.items.size() || a.keys.size() != b.keys.size())
      return false;
    for (std::size_t i = 0; i < a.items.size(); ++i) {
      if (i < a.keys.size() && !same(a.keys[i], b.keys[i], depth + 1)) return false;
      if (!same(a.items[i].node, b.items[i].node, depth + 1)) return false;
    }
    return true;
  }

 private:
  const Document& a_;
  const Document& b_;
  std::unordered_map<NodeId, NodeId> met_;
};

}  // namespace

NodeId Document::add(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<NodeId>(nodes.size() - 1);
}

std::string shown_path(std::string_view path) {
  std::string out(path.substr(0, utf8_prefix(path.substr(0, 4096))));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return out;
}

bool same(const Document& a, const Document& b) { return Comparison(a, b).same(a.root, b.root, 0); }

}  // namespace muster::patch
