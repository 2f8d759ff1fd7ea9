// The table of all keys of the job spec: type, accepted values, default and one line of help. Plain
// values.
//
// There is one row for each key. The parser (read_spec.cc), `muster explain` and the test of
// docs/job-spec.md all read this table. A key of kind Later is refused by name, unless its value is
// its default.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace muster::spec {

enum class KeyKind : std::uint8_t {
  Section,  // a map of the rows below it
  Text,
  Choice,  // one of `accepted`; a word of `later` is known, but refused
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
  // other tools' words for this key, split at blanks; the message about an unknown key names this
  // one
  std::string_view aliases = {};
  std::uint64_t least = 0, most = 0;  // Number
};

inline constexpr std::size_t kWordsMax = 65536;  // of one command line

std::span<const KeyRow> key_table();
const KeyRow* find_key(std::string_view key);

// Returns the rows one level below `section` ("" = the top level), in the table's order.
std::vector<const KeyRow*> keys_below(std::string_view section);

// Returns the row that another tool's word stands for: "gpus" -> resources.devices. It ignores case
// and the difference of '-' and '_'. It searches the rows below `section` first; nullptr means
// none.
const KeyRow* find_alias(std::string_view section, std::string_view word);

// Returns the meaning of another tool's word for a value of a Choice: resources.type "npu" ->
// "ascend". Returns an empty text if the word is unknown.
std::string_view value_meant(std::string_view key, std::string_view word);

// Returns the last part of a dotted key.
std::string_view leaf(std::string_view key);

}  // namespace muster::spec
