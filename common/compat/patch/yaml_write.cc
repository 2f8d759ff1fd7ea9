#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "common/compat/patch/document.h"

namespace muster::patch {
namespace {

// The code point at text[at] of UTF-8 text, and its number of bytes.
std::pair<std::uint32_t, std::size_t> code_point(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1FU) << 6U | (byte(1) & 0x3FU), 2};
  if (lead < 0xF0) return {(lead & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU), 3};
  return {(lead & 0x07U) << 18U | (byte(1) & 0x3FU) << 12U | (byte(2) & 0x3FU) << 6U |
              (byte(3) & 0x3FU),
          4};
}

// Whether a reader of YAML 1.1 accepts the character unchanged inside quotes on one line.
bool printable(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return false;
  return code != 0x2028 && code != 0x2029 && code != 0xFEFF && code != 0xFFFE && code != 0xFFFF;
}

std::string quoted(std::string_view text) {
  std::string single = "'", twice = "\"";
  bool plain = true;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = code_point(text, at);
    const std::string_view character = text.substr(at, bytes);
    at += bytes;
    single += character;
    if (character == "'") single += '\'';
    if (printable(code)) {
      if (code == '"' || code == '\\') twice += '\\';
      twice += character;
      continue;
    }
    plain = false;
    if (code == '\n')
      twice += "\\n";
    else if (code == '\t')
      twice += "\\t";
    else if (code < 0x100)
      twice += fmt::format("\\x{:02X}", code);
    else
      twice += fmt::format("\\u{:04X}", code);
  }
  return plain ? single + "'" : twice + "\"";
}

class Writer {
 public:
  explicit Writer(const Document& document) : document_(document), names_(document.nodes.size()) {}

  std::string run() {
    const Node& root = document_.at(document_.root);
    const std::string properties = begin(document_.root);
    if (is_block(root)) {
      if (!properties.empty()) out_ += "--- " + properties.substr(0, properties.size() - 1) + "\n";
      entries(root, 0, false);
    } else {
      out_ += properties + flat(root) + "\n";
    }
    return std::move(out_);
  }
  [[nodiscard]] bool too_deep() const { return too_deep_; }

 private:
  static bool is_block(const Node& node) {
    return (node.kind == Node::Kind::List || node.kind == Node::Kind::Map) && !node.items.empty();
  }

  static std::string flat(const Node& node) {
    switch (node.kind) {
      case Node::Kind::Null: return "null";
      case Node::Kind::Plain: return node.text;
      case Node::Kind::Quoted: return quoted(node.text);
      case Node::Kind::List: return "[]";
      case Node::Kind::Map: return "{}";
    }
    return {};
  }

  // Returns "&name !!tag " if the node has them. From this call on the node counts as written.
  std::string begin(NodeId id) {
    const Node& node = document_.at(id);
    std::string text;
    if (!node.anchor.empty()) {
      std::uint32_t& used = used_[node.anchor];
      std::string name = node.anchor;
      while (++used > 1) {  // another node may have this name itself
        name = fmt::format("{}_{}", node.anchor, used);
        if (used_.try_emplace(name, 1).second) break;
      }
      names_[id] = name;
      text += fmt::format("&{} ", name);
    }
    constexpr std::string_view kStandard = "tag:yaml.org,2002:";
    if (node.tag.starts_with(kStandard))
      text += fmt::format("!!{} ", std::string_view(node.tag).substr(kStandard.size()));
    else if (node.tag.starts_with('!'))
      text += node.tag + " ";
    else if (!node.tag.empty())
      text += fmt::format("!<{}> ", node.tag);
    return text;
  }

  void entries(const Node& node, std::size_t indent, bool first_inline) {
    if (indent > 2 * kDepthWritten) {
      too_deep_ = true;
      return;
    }
    for (std::size_t i = 0; i < node.items.size() && !too_deep_; ++i) {
      if (i > 0 || !first_inline) out_.append(indent, ' ');
      const bool list = node.kind == Node::Kind::List;
      if (list)
        out_ += '-';
      else
        out_ += begin(node.keys[i]) + flat(document_.at(node.keys[i])) + ":";
      value(node.items[i].node, indent + 2, list);
    }
  }

  // Writes the value after "key:" or "-".
  void value(NodeId id, std::size_t indent, bool in_list) {
    if (!names_[id].empty()) {
      out_ += fmt::format(" *{}\n", names_[id]);
      return;
    }
    const Node& node = document_.at(id);
    const std::string properties = begin(id);
    if (!is_block(node)) {
      out_ += " " + properties + flat(node) + "\n";
      return;
    }
    const bool inline_first = in_list && properties.empty() && node.kind == Node::Kind::Map;
    if (inline_first)
      out_ += ' ';
    else if (properties.empty())
      out_ += '\n';
    else
      out_ += " " + properties.substr(0, properties.size() - 1) + "\n";
    entries(node, indent, inline_first);
  }

  const Document& document_;
  std::vector<std::string> names_;  // names of anchored nodes that are already written
  std::unordered_map<std::string, std::uint32_t> used_;
  std::string out_;
  bool too_deep_ = false;
};

}  // namespace

Result<std::string> write_yaml(const Document& document) {
  Writer writer(document);
  std::string text = writer.run();
  if (writer.too_deep())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the result is nested deeper than {} levels", kDepthWritten));
  const auto again = read_yaml(text, kDepthWritten);
  if (!again || !same(document, *again))
    return fail(
        ErrorCode::InvalidArgument,
        "what it holds cannot be written again as it is; write its unusual values in quotes");
  return text;
}

}  // namespace muster::patch
