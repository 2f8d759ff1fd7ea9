// What a job has of an input: the names, sizes and SHA-256 of its objects. Unlike a manifest
// (manifest.h) it says nothing of a store: it is the same wherever the same files come from.
// Attempts and nodes of a job compare it. Pure.
//
// Its text is kept on nodes (agent/stage/kept_contents.h), and its digest is part of the protocol
// of agents: a change of the text makes nodes of different releases differ.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/store/manifest.h"

namespace muster::store {

struct Content {
  std::string name;  // as Object::name
  std::uint64_t size = 0;
  std::string sha256;  // 64 hexadecimal digits
  friend bool operator==(const Content&, const Content&) = default;
};

struct Contents {
  bool is_file = false;            // it is one object, and not in a directory
  std::vector<Content> objects;    // in the order of their names
  std::vector<std::string> empty;  // as Manifest::empty

  // The most that fits, if the sizes are more than that together.
  [[nodiscard]] std::uint64_t bytes() const;
  // In lines, for parse_contents().
  [[nodiscard]] std::string text() const;
  // Of text(), 64 hexadecimal digits.
  [[nodiscard]] std::string sha256() const;
};

// From Contents::text(). DataLoss: it is none, or a node could not have such files.
Result<Contents> parse_contents(std::string_view text);

}  // namespace muster::store
