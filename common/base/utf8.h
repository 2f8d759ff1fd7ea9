// Whether bytes are UTF-8: a `string` of a message travels only as such, and its reader cannot
// parse the whole message otherwise. By the table of well-formed byte sequences (The Unicode
// Standard, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF. Our own, for
// protobuf keeps its check internal, and no library of ours has one. Pure; linear.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

// Bytes of the longest beginning that is UTF-8 and does not end within a character.
[[nodiscard]] std::size_t utf8_prefix(std::string_view text);

[[nodiscard]] inline bool is_utf8(std::string_view text) {
  return utf8_prefix(text) == text.size();
}

}  // namespace muster
