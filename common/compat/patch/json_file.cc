// Reads JSON by nlohmann's parser into the same graph as YAML, and writes it. The order of keys is
// kept, numbers stay as written, and duplicate keys stay duplicate.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "common/base/utf8.h"
#include "common/compat/patch/document.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/words.h"

namespace muster::patch {
namespace {

class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(Document& document) : document_(document) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override {
    return add({.kind = Node::Kind::Plain, .text = value ? "true" : "false"});
  }
  bool number_integer(std::int64_t value) override {
    return add({.kind = Node::Kind::Plain, .text = std::to_string(value)});
  }
  bool number_unsigned(std::uint64_t value) override {
    return add({.kind = Node::Kind::Plain, .text = std::to_string(value)});
  }
  bool number_float(double, const std::string& text) override {
    return add({.kind = Node::Kind::Plain, .text = text});
  }
  bool string(std::string& value) override {
    return add({.kind = Node::Kind::Quoted, .text = std::move(value)});
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Node::Kind::Map); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Node::Kind::List); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (!room()) return false;
    const NodeId id = document_.add({.kind = Node::Kind::Quoted, .text = std::move(name)});
    document_.at(levels_.back()).keys.push_back(id);
    return true;
  }
  bool parse_error(std::size_t, const std::string& token,
                   const nlohmann::json::exception& error) override {
    constexpr int kBeyondDouble = 406;
    if (error.id == kBeyondDouble)
      return refuse(
          fmt::format("the number '{}' is beyond what a double holds", ranktable::shown(token)));
    std::string_view what = error.what();
    constexpr std::string_view kAt = "parse error at ";
    if (const std::size_t at = what.find(kAt); at != std::string_view::npos)
      what.remove_prefix(at + kAt.size());
    return refuse(fmt::format("this is not JSON: {} near '{}'",
                              ranktable::shown(what.substr(0, what.find(": "))),
                              ranktable::shown(token)));
  }

  std::string refusal = "this is not JSON";

 private:
  bool refuse(std::string why) {
    refusal = std::move(why);
    return false;
  }
  bool room() {
    return document_.nodes.size() < kNodesMax ||
           refuse(fmt::format("it has more than {} values", kNodesMax));
  }
  void put(NodeId id) {
    if (levels_.empty())
      document_.root = id;
    else
      document_.at(levels_.back()).items.push_back({.node = id});
  }
  bool add(Node node) {
    if (!room()) return false;
    put(document_.add(std::move(node)));
    return true;
  }
  bool open(Node::Kind kind) {
    if (levels_.size() >= kDepthMax)
      return refuse(fmt::format("it is nested deeper than {} levels", kDepthMax));
    if (!room()) return false;
    const NodeId id = document_.add({.kind = kind});
    put(id);
    levels_.push_back(id);
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  Document& document_;
  std::vector<NodeId> levels_;
};

bool json_number(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - from;
  };
  if (text.starts_with('-')) ++at;
  const std::size_t first = at;
  const std::size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[first] == '0')) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

std::string plain(const std::string& text) {
  for (const auto& [word, json] :
       std::to_array<std::pair<std::string_view, std::string_view>>({{"true", "true"},
                                                                     {"True", "true"},
                                                                     {"TRUE", "true"},
                                                                     {"false", "false"},
                                                                     {"False", "false"},
                                                                     {"FALSE", "false"}}))
    if (text == word) return std::string(json);
  if (json_number(text)) return text;
  std::string out;
  ranktable::append_json_string(out, text);
  return out;
}

class Writer {
 public:
  explicit Writer(const Document& document) : document_(document) {}

  // False: too deep, or longer than a file may be (values that YAML shares are written out here).
  bool value(NodeId id, std::size_t depth) {
    if (depth > kDepthWritten || out.size() > kFileBytesMax + (64U << 10U)) return false;
    const Node& node = document_.at(id);
    switch (node.kind) {
      case Node::Kind::Null: out += "null"; return true;
      case Node::Kind::Plain: out += plain(node.text); return true;
      case Node::Kind::Quoted: ranktable::append_json_string(out, node.text); return true;
      case Node::Kind::List:
      case Node::Kind::Map: break;
    }
    const bool map = node.kind == Node::Kind::Map;
    out += map ? '{' : '[';
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      out += i == 0 ? "\n" : ",\n";
      out.append(2 * depth + 2, ' ');
      if (map) {
        const Node& key = document_.at(node.keys[i]);
        ranktable::append_json_string(out, key.kind == Node::Kind::Null ? "null" : key.text);
        out += ": ";
      }
      if (!value(node.items[i].node, depth + 1)) return false;
    }
    if (!node.items.empty()) {
      out += '\n';
      out.append(2 * depth, ' ');
    }
    out += map ? '}' : ']';
    return true;
  }

  std::string out;

 private:
  const Document& document_;
};

}  // namespace

Result<Document> read_json(std::string_view text) {
  if (!is_utf8(text)) return fail(ErrorCode::InvalidArgument, "it is not UTF-8 text");
  Document document;
  Builder builder(document);
  if (!nlohmann::json::sax_parse(text, &builder))
    return fail(ErrorCode::InvalidArgument, builder.refusal);
  return document;
}

Result<std::string> write_json(const Document& document) {
  Writer writer(document);
  if (!writer.value(document.root, 0))
    return fail(ErrorCode::InvalidArgument, "the result is too deep or too long");
  return std::move(writer.out) + "\n";
}

}  // namespace muster::patch
