#include "common/base/utf8.h"

#include <array>
#include <cstdint>

namespace muster {
namespace {

// A row of table 3-7: the range of the first byte and the range of the second byte. All later bytes
// are 80..BF.
struct Row {
  std::uint8_t first_least, first_most;
  std::uint8_t length;
  std::uint8_t second_least, second_most;
};
constexpr std::array kRows = {
    Row{0x00, 0x7F, 1, 0x80, 0xBF}, Row{0xC2, 0xDF, 2, 0x80, 0xBF}, Row{0xE0, 0xE0, 3, 0xA0, 0xBF},
    Row{0xE1, 0xEC, 3, 0x80, 0xBF}, Row{0xED, 0xED, 3, 0x80, 0x9F}, Row{0xEE, 0xEF, 3, 0x80, 0xBF},
    Row{0xF0, 0xF0, 4, 0x90, 0xBF}, Row{0xF1, 0xF3, 4, 0x80, 0xBF}, Row{0xF4, 0xF4, 4, 0x80, 0x8F},
};

// Returns the length of the character at the beginning, or 0 if there is none.
std::size_t character(std::string_view text) {
  const auto within = [&](std::size_t at, std::uint8_t least, std::uint8_t most) {
    const auto byte = static_cast<std::uint8_t>(text[at]);
    return byte >= least && byte <= most;
  };
  for (const Row& row : kRows) {
    if (!within(0, row.first_least, row.first_most)) continue;
    if (text.size() < row.length ||
        (row.length > 1 && !within(1, row.second_least, row.second_most)))
      return 0;
    for (std::size_t at = 2; at < row.length; ++at) {
      if (!within(at, 0x80, 0xBF)) return 0;
    }
    return row.length;
  }
  return 0;
}

}  // namespace

std::size_t utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = character(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

}  // namespace muster
