// Bytes as lower-case hexadecimal digits. Pure.
#pragma once

#include <span>
#include <string>

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

}  // namespace muster
