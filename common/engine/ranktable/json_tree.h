// Turns JSON text into a plain tree, and a tree into text. Pure.
//
// Only json_tree.cc of this folder uses nlohmann-json, and no exception of the library leaves it.
// Things that a table does not need but an attacker may use are errors: endless nesting, endless
// values, duplicate keys, and numbers out of range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace muster::ranktable {

struct Json {
  enum class Kind : std::uint8_t { Null, Bool, Number, String, Array, Object };
  Kind kind = Kind::Null;
  std::string text;               // String: its content. Bool and Number: as written in JSON
  std::vector<Json> items;        // Array: the elements. Object: the values, parallel to keys
  std::vector<std::string> keys;  // Object

  [[nodiscard]] const Json* get(std::string_view key) const;
  [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
};
// Name of a kind for messages: "a number", "a list".
std::string_view kind_name(Json::Kind kind);

inline constexpr std::size_t kTextBytesMax = 32 << 20;  // a table of 65,536 ranks has about 9 MiB
inline constexpr std::size_t kJsonDepthMax = 16;
inline constexpr std::size_t kJsonValuesMax = 1'000'000;
inline constexpr std::size_t kJsonKeysMax = 256;  // for one object

// Errors (InvalidArgument): "this is not JSON: line 3, column 2: ...", or the limit that the text
// exceeds.
Result<Json> read_json(std::string_view text);

// The text that Python's json.dump(..., indent=4) writes.
std::string json_text(const Json& value);
// Appends the string with quotes, ASCII only, escaped as Python's json.dump does. Bytes that are
// not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace muster::ranktable
