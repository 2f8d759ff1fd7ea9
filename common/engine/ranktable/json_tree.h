// JSON text -> a plain tree, and back. The one user of nlohmann-json here: its exceptions end in
// json_tree.cc. What a table has no use for and an attacker has (endless nesting, endless values, a
// key twice, numbers beyond counting) is an error, not a feature. Pure.
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
  std::string text;               // String: its content. Bool and Number: as it stands in JSON
  std::vector<Json> items;        // Array: the elements. Object: the values, by place of keys
  std::vector<std::string> keys;  // Object

  [[nodiscard]] const Json* get(std::string_view key) const;
  [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
};
// For messages: "a number", "a list".
std::string_view kind_name(Json::Kind kind);

inline constexpr std::size_t kTextBytesMax = 32 << 20;  // a table of 65,536 ranks has about 9 MiB
inline constexpr std::size_t kJsonDepthMax = 16;
inline constexpr std::size_t kJsonValuesMax = 1'000'000;
inline constexpr std::size_t kJsonKeysMax = 256;  // of one object

// Errors (InvalidArgument): "this is not JSON: line 3, column 2: ...", or the limit that was hit.
Result<Json> read_json(std::string_view text);

// As Python's json.dump(..., indent=4) writes it.
std::string json_text(const Json& value);
// The string with its quotes, ASCII only, as Python's json.dump escapes it; what is not UTF-8
// becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace muster::ranktable
