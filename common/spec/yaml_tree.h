// Reads YAML text into a plain tree with positions. Pure.
//
// The exceptions of yaml-cpp end here. Features that a spec does not need and an attacker could use
// (aliases, merge keys, endless nesting) are reported as problems.
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
  std::uint32_t line = 0, column = 0;  // from 1; 0 = no position
  bool bad = false;                    // already has a problem: do not read it further

  [[nodiscard]] const Node* get(std::string_view key) const;
  // Returns the value at `key` of a map; creates it (null) if it is missing.
  Node& at(std::string_view key);
};

inline constexpr std::size_t kDepthMax = 64;
inline constexpr std::size_t kNodesMax = 100'000;
inline constexpr std::size_t kProblemsMax = 100;  // then reading stops

struct Tree {
  Node root;
  std::vector<Problem> problems;
};
// `with_places` is false for the value of an override, which is in no file.
Tree read_tree(std::string_view text, bool with_places);

// True if both are equal in value: texts, order of lists, keys of maps in any order.
bool same_value(const Node& a, const Node& b);

}  // namespace muster::spec
