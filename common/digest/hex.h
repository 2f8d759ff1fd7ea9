// Bytes as lower-case hexadecimal digits. Pure.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace muster {

inline std::string hex_of(std::span<const unsigned char> bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 15U];
  }
  return hex;
}

// It could be a SHA-256 as hex_of() writes it.
inline bool is_sha256_hex(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace muster
