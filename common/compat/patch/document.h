// A YAML or JSON file as a graph of values, read and written as a whole. Pure.
//
// Values that YAML shares by an anchor and its aliases are one node. So a change of the node
// applies wherever the file refers to it, as when a person edits the file. Shared values are never
// copied, so a file of a few hundred bytes that stands for billions of values stays small.
//
// Plain scalars stay as written: the program that loads the file decides what `1e-5` or `yes`
// means. Comments are not kept.
//
// Hostile files: bytes, values and depth are bounded, and the libraries' exceptions do not leave
// this component.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::patch {

using NodeId = std::uint32_t;

struct Ref {
  NodeId node = 0;
  bool alias = false;  // written as *name: the value is defined at its anchor
};

struct Node {
  enum class Kind : std::uint8_t { Null, Plain, Quoted, List, Map };
  Kind kind = Kind::Null;
  // Plain: as written. Quoted: the text between the quotes. JSON's numbers and words are Plain, its
  // strings are Quoted
  std::string text;
  std::string tag;           // YAML: resolved; empty = none
  std::string anchor;        // YAML
  std::vector<Ref> items;    // List: the elements. Map: the values, parallel to keys
  std::vector<NodeId> keys;  // Map: scalars
};

struct Document {
  std::vector<Node> nodes;
  NodeId root = 0;

  NodeId add(Node node);
  [[nodiscard]] const Node& at(NodeId id) const { return nodes[id]; }
  [[nodiscard]] Node& at(NodeId id) { return nodes[id]; }
};

enum class Format : std::uint8_t { Yaml, Json };

inline constexpr std::size_t kFileBytesMax = 4 << 20;
inline constexpr std::size_t kDepthMax = 64;  // of a file, of a value put into one, of a path
inline constexpr std::size_t kDepthWritten = 3 * kDepthMax;
inline constexpr std::size_t kNodesMax = 200'000;

// Errors (InvalidArgument) do not have the file's name: "this is not YAML: line 3, column 7: ...".
Result<Document> read_yaml(std::string_view text, std::size_t depth_max = kDepthMax);
Result<Document> read_json(std::string_view text);
inline Result<Document> read(Format format, std::string_view text) {
  return format == Format::Yaml ? read_yaml(text) : read_json(text);
}

// YAML: block style throughout, two blanks for each level; the written text is read again and
// compared. JSON: of a YAML value, true, false, null and JSON's numbers stay as they are, and every
// other scalar becomes a string.
Result<std::string> write_yaml(const Document& document);
Result<std::string> write_json(const Document& document);
inline Result<std::string> write(Format format, const Document& document) {
  return format == Format::Yaml ? write_yaml(document) : write_json(document);
}

// A path for a message: at most 4,096 bytes, with '?' in place of control characters.
std::string shown_path(std::string_view path);

// Whether both have the same values, written alike and shared in the same manner.
bool same(const Document& a, const Document& b);

}  // namespace muster::patch
