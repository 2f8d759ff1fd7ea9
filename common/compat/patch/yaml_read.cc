#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "common/base/utf8.h"
#include "common/compat/patch/document.h"
#include "common/engine/ranktable/words.h"

namespace muster::patch {
namespace {

using ranktable::shown;

// YAML's own limit for a key on one line is 1,024 characters
constexpr std::size_t kKeyBytesMax = 1000;

// Thrown through yaml-cpp's parser, caught in read_yaml.
struct Refused {
  std::string why;
};

std::string place(const YAML::Mark& mark) {
  return mark.is_null() ? std::string()
                        : fmt::format("line {}, column {}: ", mark.line + 1, mark.column + 1);
}

bool anchor_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}
bool tag_name(std::string_view text) {
  return text.size() <= 256 && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("!_-./:,+").find(c) != std::string_view::npos;
         });
}

// The joined lines of a plain scalar may not be a valid plain scalar on one line. Every program
// takes such a text for a string.
bool stays_plain(std::string_view text) {
  return text.find('\n') == std::string_view::npos && text.find(": ") == std::string_view::npos &&
         text.find(" #") == std::string_view::npos && !text.ends_with(':');
}

class Builder final : public YAML::EventHandler {
 public:
  Builder(Document& document, std::size_t depth_max) : document_(document), depth_max_(depth_max) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string& name) override { name_ = name; }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(mark, {.node = make(mark, {}, "?", anchor)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) refuse(mark, "an alias of nothing");
    if (std::ranges::find(levels_, found->second, &Level::node) != levels_.end())
      refuse(mark, "a value that contains itself");
    if (in_key()) refuse(mark, "an alias stands for a key");
    add(mark, {.node = found->second, .alias = true});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool plain = tag == "?" && stays_plain(value);
    add(mark,
        {.node = make(mark, {.kind = plain ? Node::Kind::Plain : Node::Kind::Quoted, .text = value},
                      tag, anchor)});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, Node::Kind::List, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, Node::Kind::Map, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    NodeId node = 0;
    std::optional<NodeId> key;  // of a map: the key is read, its value is not
  };

  [[noreturn]] static void refuse(const YAML::Mark& mark, const std::string& why) {
    throw Refused{place(mark) + why};
  }
  [[nodiscard]] bool in_key() const {
    return !levels_.empty() && document_.at(levels_.back().node).kind == Node::Kind::Map &&
           !levels_.back().key;
  }

  NodeId make(const YAML::Mark& mark, Node node, const std::string& tag, YAML::anchor_t anchor) {
    if (document_.nodes.size() >= kNodesMax)
      refuse(mark, fmt::format("more than {} values", kNodesMax));
    if (tag != "?" && tag != "!") {
      if (!tag_name(tag)) refuse(mark, fmt::format("the tag '{}'", shown(tag)));
      node.tag = tag;
    }
    if (anchor != YAML::NullAnchor) node.anchor = anchor_name(name_) ? name_ : "a";
    name_.clear();
    const NodeId id = document_.add(std::move(node));
    if (anchor != YAML::NullAnchor) anchored_[anchor] = id;
    return id;
  }

  void open(const YAML::Mark& mark, Node::Kind kind, const std::string& tag,
            YAML::anchor_t anchor) {
    if (levels_.size() >= depth_max_)
      refuse(mark, fmt::format("nested deeper than {} levels", depth_max_));
    if (in_key()) refuse(mark, "a key that is a list or a map");
    levels_.push_back({.node = make(mark, {.kind = kind}, tag, anchor), .key = {}});
  }
  void close() {
    const NodeId node = levels_.back().node;
    levels_.pop_back();
    add(YAML::Mark::null_mark(), {.node = node});
  }

  void add(const YAML::Mark& mark, Ref ref) {
    if (levels_.empty()) {
      document_.root = ref.node;
      return;
    }
    Level& level = levels_.back();
    Node& parent = document_.at(level.node);
    if (parent.kind == Node::Kind::List) {
      parent.items.push_back(ref);
    } else if (!level.key) {
      if (document_.at(ref.node).text.size() > kKeyBytesMax)
        refuse(mark, fmt::format("a key of more than {} bytes", kKeyBytesMax));
      level.key = ref.node;
    } else {
      parent.keys.push_back(*level.key);
      parent.items.push_back(ref);
      level.key.reset();
    }
  }

  Document& document_;
  std::size_t depth_max_;
  std::vector<Level> levels_;
  std::string name_;  // anchor of the next value
  std::unordered_map<YAML::anchor_t, NodeId> anchored_;
};

class Nothing final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    throw Refused{place(mark) + "a second document ('---')"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

}  // namespace

Result<Document> read_yaml(std::string_view text, std::size_t depth_max) {
  const auto no = [](const std::string& why) { return fail(ErrorCode::InvalidArgument, why); };
  if (text.find('\0') != std::string_view::npos || !is_utf8(text))
    return no("it is not UTF-8 text");
  Document document;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(document, depth_max);
    if (parser.HandleNextDocument(builder)) {
      Nothing nothing;
      (void)parser.HandleNextDocument(nothing);
    }
  } catch (const Refused& refused) {
    return no("this is not read: " + refused.why);
  } catch (const YAML::Exception& error) {
    return no(fmt::format("this is not YAML: {}{}", place(error.mark), shown(error.msg)));
  } catch (const std::exception& error) {
    return no(fmt::format("this is not YAML: {}", shown(error.what())));
  }
  if (document.nodes.empty()) document.root = document.add({});
  return document;
}

}  // namespace muster::patch
