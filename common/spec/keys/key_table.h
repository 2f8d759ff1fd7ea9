// The table of all keys of the job spec: type, fields, accepted values, default and one line of
// help. Plain values.
//
// There is one row for each key. The parser (read_spec.cc), --set of `muster resume`, `muster
// explain`, the JSON Schema and the test of docs/job-spec.md all read this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::spec {

struct KeyType;  // key_type.h

struct KeyRow {
  std::string_view key;  // dotted
  const KeyType* type = nullptr;
  std::string_view fallback;  // the default, as YAML; empty = required
  std::string_view accepted;  // for people; the words of kChoice, split at " | "
  std::string_view later;     // kChoice: words that are known but not in this release
  std::string_view help;
  // other tools' words for this key, split at blanks; the message about an unknown key names this
  // one
  std::string_view aliases = {};
  // The fields of JobSpec that the key sets, split at blanks; empty: the one of the key's name
  std::string_view fields = {};
  std::uint64_t least = 0, most = 0;  // of numbers; kFile: `most` is its bytes
};

inline constexpr std::size_t kWordsMax = 65536;  // of one command line
inline constexpr std::uint64_t kNofileMax = 1'048'576;
inline constexpr std::size_t kRankTableBytesMax = 512U << 10U;

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

// Returns the paths of the row's fields (field.h). A section and a key that is not in this release
// have none.
std::vector<std::string_view> fields_of(const KeyRow& row);
std::string_view first_field(const KeyRow& row);

// Returns the key that sets a field, for messages about a path like "observe.step" or
// "resources.hosts[1]". Without one it returns the path.
std::string key_of_field(std::string_view path);

// Returns the words of `accepted` or `later`.
std::vector<std::string_view> choices(std::string_view text);

}  // namespace muster::spec
