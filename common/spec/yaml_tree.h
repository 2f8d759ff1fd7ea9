// YAML text -> a plain tree with places. The exceptions of yaml-cpp end here. What a spec has no
// use for and an attacker has
// (aliases, merge keys, endless nesting) is a problem, not a feature. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/parse.h"

namespace muster::spec {

struct Node {
  enum class Kind : std::uint8_t { Null, Scalar, List, Map };
  Kind kind = Kind::Null;
  std::string text;                    // Scalar
  bool quoted = false;                 // Scalar: 'x', "x" or a block: never a number or a boolean
  std::vector<Node> items;             // List: the elements. Map: the values, in the order of keys
  std::vector<Node> keys;              // Map: scalars
  std::uint32_t line = 0, column = 0;  // from 1; 0 = no place
  bool bad = false;                    // has its problem already: read no further

  [[nodiscard]] const Node* get(std::string_view key) const;
  // The value at `key` of a map, made (null) where it is not there.
  Node& at(std::string_view key);
};

inline constexpr std::size_t kDepthMax = 64;
inline constexpr std::size_t kNodesMax = 100'000;
inline constexpr std::size_t kProblemsMax = 100;  // then reading stops

struct Tree {
  Node root;
  std::vector<Problem> problems;
};
// `with_places` false: an override's value, which stands in no file.
Tree read_tree(std::string_view text, bool with_places);

// Equal in value: texts, order of lists, keys of maps in any order.
bool same_value(const Node& a, const Node& b);

}  // namespace muster::spec
