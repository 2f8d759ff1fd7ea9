#include "tests/fuzz/target.h"

#include <algorithm>

#include "common/base/utf8.h"

namespace muster::fuzz {
bool is_message(std::string_view text) {
  return !text.empty() && is_utf8(text) && std::ranges::none_of(text, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f;
  });
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace muster::fuzz
