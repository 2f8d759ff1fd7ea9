// Checks whether bytes are UTF-8. Pure; linear time.
//
// A `string` field of a message must be UTF-8; otherwise its reader cannot parse the whole message.
// The rules are the table of well-formed byte sequences (The Unicode Standard, table 3-7): no
// overlong forms, no surrogates, nothing above U+10FFFF. muster has its own check, because protobuf
// keeps its check internal and no other library of muster has one.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

// Returns the length of the longest prefix that is UTF-8 and does not end within a character.
[[nodiscard]] std::size_t utf8_prefix(std::string_view text);

[[nodiscard]] inline bool is_utf8(std::string_view text) {
  return utf8_prefix(text) == text.size();
}

}  // namespace muster
