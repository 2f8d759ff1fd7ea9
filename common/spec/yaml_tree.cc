#include "common/spec/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "common/spec/keys/values.h"

namespace muster::spec {
namespace {

// It is thrown through yaml-cpp's parser and caught in read_tree, because nothing after it is worth
// reading.
struct Enough {};

class Builder final : public YAML::EventHandler {
 public:
  Builder(Tree& tree, bool with_places) : tree_(tree), with_places_(with_places) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(placed(mark)); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    report(mark, "aliases ('*name') are not read; write the value out");
    Node node = placed(mark);
    node.kind = Node::Kind::Scalar;
    node.bad = true;
    add(std::move(node));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    Node node = placed(mark);
    node.kind = Node::Kind::Scalar;
    node.text = value;
    node.quoted = tag == "!";
    if (tag != "?" && tag != "!" && !tag.empty())
      report(mark, fmt::format("tags ('{}') are not read; write the plain value", tag));
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, Node::Kind::List);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(mark, Node::Kind::Map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    Node node;
    std::optional<Node> key;  // Map: its key was read, its value was not yet
    bool key_ignored = false;
    std::unordered_map<std::string, std::uint32_t> lines;  // Map: the line of each key
  };

  void report(const YAML::Mark& mark, std::string message) {
    problem_at(placed(mark), std::move(message));
  }

  Node placed(const YAML::Mark& mark) const {
    Node node;
    if (with_places_ && !mark.is_null()) {
      node.line = static_cast<std::uint32_t>(mark.line) + 1;
      node.column = static_cast<std::uint32_t>(mark.column) + 1;
    }
    return node;
  }

  void open(const YAML::Mark& mark, Node::Kind kind) {
    if (levels_.size() >= kDepthMax) {
      // yaml-cpp opens such a node twice.
      report(mark,
             fmt::format("nested deeper than {} levels; is a bracket not closed?", kDepthMax));
      throw Enough{};
    }
    Node node = placed(mark);
    node.kind = kind;
    levels_.push_back({.node = std::move(node)});
  }

  void close() {
    Node node = std::move(levels_.back().node);
    levels_.pop_back();
    add(std::move(node));
  }

  void problem_at(const Node& place, std::string message) {
    tree_.problems.push_back(
        {.line = place.line, .column = place.column, .message = std::move(message)});
    if (tree_.problems.size() >= kProblemsMax) throw Enough{};
  }

  void add(Node node) {
    if (++nodes_ > kNodesMax) {
      problem_at(node, fmt::format("more than {} values; put data into files", kNodesMax));
      throw Enough{};
    }
    if (levels_.empty()) {
      tree_.root = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == Node::Kind::List) {
      level.node.items.push_back(std::move(node));
      return;
    }
    if (!level.key) {
      level.key_ignored = !good_key(level, node);
      level.key = std::move(node);
      return;
    }
    if (!level.key_ignored) {
      if (node.kind == Node::Kind::Null) {  // yaml-cpp gives it the next token's position
        node.line = level.key->line;
        node.column = level.key->column;
      }
      level.node.keys.push_back(std::move(*level.key));
      level.node.items.push_back(std::move(node));
    }
    level.key.reset();
  }

  bool good_key(Level& level, const Node& key) {
    if (key.bad) return false;
    if (key.kind != Node::Kind::Scalar) {
      problem_at(key, "a key must be a plain word");
      return false;
    }
    if (key.text == "<<" && !key.quoted) {
      problem_at(key, "merge keys ('<<') are not read; write the keys out");
      return false;
    }
    const auto [earlier, first] = level.lines.try_emplace(key.text, key.line);
    if (!first)
      problem_at(key, fmt::format("key '{}' is there twice, first in line {}", shown(key.text),
                                  earlier->second));
    return first;
  }

  Tree& tree_;
  bool with_places_;
  std::vector<Level> levels_;
  std::size_t nodes_ = 0;
};

// Returns the offset of the first byte that is not UTF-8, or of a NUL. Neither may be in a spec or
// an environment.
std::optional<std::size_t> bad_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
    };
    const auto tail = [&](std::size_t at) { return (byte(at) & 0xC0) == 0x80; };
    const unsigned c = byte(i);
    std::size_t length = 0;
    if (c == 0) return i;
    if (c < 0x80)
      length = 1;
    else if (c >= 0xC2 && c < 0xE0 && tail(i + 1))
      length = 2;
    else if (c >= 0xE0 && c < 0xF0 && tail(i + 1) && tail(i + 2) &&
             !(c == 0xE0 && byte(i + 1) < 0xA0) && !(c == 0xED && byte(i + 1) >= 0xA0))
      length = 3;
    else if (c >= 0xF0 && c < 0xF5 && tail(i + 1) && tail(i + 2) && tail(i + 3) &&
             !(c == 0xF0 && byte(i + 1) < 0x90) && !(c == 0xF4 && byte(i + 1) >= 0x90))
      length = 4;
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

Problem at_offset(std::string_view text, std::size_t offset, bool with_places,
                  std::string message) {
  Problem problem{.message = std::move(message)};
  if (!with_places) return problem;
  const std::string_view before = text.substr(0, offset);
  problem.line = static_cast<std::uint32_t>(std::ranges::count(before, '\n')) + 1;
  const std::size_t newline = before.rfind('\n');
  problem.column =
      static_cast<std::uint32_t>(offset - (newline == std::string_view::npos ? 0 : newline + 1)) +
      1;
  return problem;
}

// For a tab yaml-cpp mostly reports an illegal map value. Another trap comes from this spec's
// templates: inside { } and [ ] YAML takes a template's brace for its own. Inside them no text can
// begin with '@' either.
std::string_view hint(std::string_view text, const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  for (int line = 0; line < mark.line && !text.empty(); ++line)
    text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos)
    return "; this line is indented with a tab: write spaces";
  if (line.find("@last") != std::string_view::npos) return "; @last wants quotes";
  return line.find("${") == std::string_view::npos
             ? ""
             : "; inside { } and [ ] a value with ${...} needs quotes";
}

}  // namespace

const Node* Node::get(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].text == key) return &items[i];
  return nullptr;
}

Node& Node::at(std::string_view key) {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].text == key) return items[i];
  keys.push_back({.kind = Kind::Scalar, .text = std::string(key)});
  items.emplace_back();
  return items.back();
}

Tree read_tree(std::string_view text, bool with_places) {
  Tree tree;
  if (text.size() > kSpecBytesMax) {
    tree.problems.push_back(at_offset(
        text, 0, with_places,
        fmt::format(
            "the spec has {} bytes, more than the {} that one may have; put data into files",
            text.size(), kSpecBytesMax)));
    return tree;
  }
  if (const auto bad = bad_byte(text); bad && text[*bad] == '\0') {
    tree.problems.push_back(at_offset(
        text, *bad, with_places, "a byte 0x00: no text file has one; is this the right file?"));
    return tree;
  } else if (bad) {
    tree.problems.push_back(
        at_offset(text, *bad, with_places,
                  fmt::format("byte 0x{:02x} is not UTF-8 text; save the file as UTF-8",
                              static_cast<unsigned>(static_cast<unsigned char>(text[*bad])))));
    return tree;
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(tree, with_places);
    if (parser.HandleNextDocument(builder)) {
      Tree rest;
      Builder ignored(rest, with_places);
      if (parser.HandleNextDocument(ignored))
        tree.problems.push_back({.line = rest.root.line,
                                 .column = rest.root.column,
                                 .message = "a second document ('---'): one job a file"});
    }
  } catch (const Enough&) {
  } catch (const YAML::Exception& error) {
    // The parser's words may have a byte of the text, also one that is half a character.
    Problem problem{.message = readable(
                        fmt::format("this is not YAML: {}{}", error.msg, hint(text, error.mark)))};
    if (with_places && !error.mark.is_null()) {
      problem.line = static_cast<std::uint32_t>(error.mark.line) + 1;
      problem.column = static_cast<std::uint32_t>(error.mark.column) + 1;
    }
    tree.problems.push_back(std::move(problem));
  }
  return tree;
}

bool same_value(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  if (a.kind == Node::Kind::Scalar) return a.text == b.text;
  if (a.kind == Node::Kind::Map)
    return std::ranges::all_of(a.keys, [&](const Node& key) {
      const Node* other = b.get(key.text);
      return other != nullptr && same_value(*a.get(key.text), *other);
    });
  return std::ranges::equal(a.items, b.items, same_value);
}

}  // namespace muster::spec
