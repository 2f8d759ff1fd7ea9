// A YAML or JSON file as a graph of values, read and written whole. What YAML shares by an anchor
// and its aliases is one node here, so that a change of it is seen wherever the file refers to it,
// as when the file is edited by hand; nothing is ever multiplied out, and a file of a few hundred
// bytes that stands for billions of values stays small. Plain scalars stay as they are written:
// what `1e-5` or `yes` is, the program that loads the file decides. Comments are not kept.
//
// Hostile files: bounded in bytes, values and depth; the libraries' exceptions end here. Pure.
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
  bool alias = false;  // written as *name: the value stands elsewhere
};

struct Node {
  enum class Kind : std::uint8_t { Null, Plain, Quoted, List, Map };
  Kind kind = Kind::Null;
  // Plain: as written. Quoted: what is between the quotes. JSON's numbers and words are Plain, its
  // strings Quoted
  std::string text;
  std::string tag;           // YAML: resolved; empty = none
  std::string anchor;        // YAML
  std::vector<Ref> items;    // List: the elements. Map: the values, beside keys
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
inline constexpr std::size_t kDepthMax = 64;  // of a file; of a value put into one; of a path
inline constexpr std::size_t kDepthWritten = 3 * kDepthMax;
inline constexpr std::size_t kNodesMax = 200'000;

// Errors (InvalidArgument) are without the file's name: "this is not YAML: line 3, column 7: ...".
Result<Document> read_yaml(std::string_view text, std::size_t depth_max = kDepthMax);
Result<Document> read_json(std::string_view text);
inline Result<Document> read(Format format, std::string_view text) {
  return format == Format::Yaml ? read_yaml(text) : read_json(text);
}

// Block style throughout, two blanks a level; what was written is read again and compared. JSON: of
// a YAML value true, false, null and JSON's numbers are themselves, every other scalar is a string.
Result<std::string> write_yaml(const Document& document);
Result<std::string> write_json(const Document& document);
inline Result<std::string> write(Format format, const Document& document) {
  return format == Format::Yaml ? write_yaml(document) : write_json(document);
}

// A path for a message: whole, but for what no terminal should get.
std::string shown_path(std::string_view path);

// The same values, written alike, shared in the same places.
bool same(const Document& a, const Document& b);

}  // namespace muster::patch
