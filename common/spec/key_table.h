// Every key of the job spec: its type, what it accepts, its default and one line of help. One row a
// key; the parser (read_spec.cc), `muster explain` and the test of docs/job-spec.md all read this
// table. A key that is not Now is refused by name unless it is given its default.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace muster::spec {

enum class KeyKind : std::uint8_t {
  Section,  // a map of the rows below it
  Text,
  Choice,  // one of `accepted`, or of `later`: known, refused
  Number,
  Duration,
  TextMap,  // NAME: text, any names
  Special,  // a form of its own: read_special.cc
  Later,    // whole key: not in this release, only its default is taken
};

struct KeyRow {
  std::string_view key;  // dotted
  KeyKind kind = KeyKind::Later;
  std::string_view fallback;  // the default, as YAML; empty = required
  std::string_view accepted;  // for people; a Choice's words, split at " | "
  std::string_view later;     // Choice: words that are known but not in this release
  std::string_view help;
  // words of other tools for it, split at blanks: an unknown key is told it
  std::string_view aliases = {};
  std::uint64_t least = 0, most = 0;  // Number
};

inline constexpr std::size_t kWordsMax = 65536;  // of one command line

std::span<const KeyRow> key_table();
const KeyRow* find_key(std::string_view key);

// The rows one level below `section` ("" = the top level), in the table's order.
std::vector<const KeyRow*> keys_below(std::string_view section);

// The row that another tool's word stands for, case and '-' aside: "gpus" -> resources.devices.
// Those below `section` first; nullptr: none.
const KeyRow* find_alias(std::string_view section, std::string_view word);

// What is meant by another tool's word for a value of a Choice: resources.type "npu" -> "ascend".
// Empty: nothing is known of it.
std::string_view value_meant(std::string_view key, std::string_view word);

// The last part of a dotted key.
std::string_view leaf(std::string_view key);

}  // namespace muster::spec
