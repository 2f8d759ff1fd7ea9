#include "common/base/utf8.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace muster {
namespace {

std::string encoded(std::uint32_t point) {
  const auto byte = [](std::uint32_t value) {
    return static_cast<char>(static_cast<unsigned char>(value));
  };
  const auto tail = [&](unsigned shift) { return byte(0x80U | ((point >> shift) & 0x3FU)); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xC0U | (point >> 6U)), tail(0)};
  if (point < 0x10000) return {byte(0xE0U | (point >> 12U)), tail(6), tail(0)};
  return {byte(0xF0U | (point >> 18U)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCharacterAndNoSurrogate) {
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    const std::string text = encoded(point);
    const bool surrogate = point >= 0xD800 && point < 0xE000;
    ASSERT_EQ(is_utf8(text), !surrogate) << std::hex << point;
    if (!surrogate && text.size() > 1) {
      ASSERT_EQ(utf8_prefix(text.substr(0, text.size() - 1)), 0U)
          << "cut off: " << std::hex << point;
    }
  }
  EXPECT_FALSE(is_utf8(encoded(0x110000)));
}

// The number of well-formed sequences of two and three bytes equals the number of ways to write one
// to three characters with them: no other bytes are accepted.
TEST(Utf8, NothingElse) {
  constexpr std::size_t kOne = 0x80, kTwo = 0x800 - 0x80, kThree = 0x10000 - 0x800 - 0x800;
  std::size_t two = 0, three = 0;
  std::array<char, 3> bytes{};
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      bytes[0] = static_cast<char>(a);
      bytes[1] = static_cast<char>(b);
      two += is_utf8({bytes.data(), 2}) ? 1 : 0;
      for (unsigned c = 0; c < 256; ++c) {
        bytes[2] = static_cast<char>(c);
        three += is_utf8({bytes.data(), 3}) ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(two, kOne * kOne + kTwo);
  EXPECT_EQ(three, kOne * kOne * kOne + 2 * kOne * kTwo + kThree);
}

TEST(Utf8, PrefixEndsBeforeTheFirstThatIsNone) {
  struct Row {
    std::string text;
    std::size_t prefix;
  };
  for (const Row& row :
       {Row{"", 0}, Row{std::string("a\0b", 3), 3}, Row{"m\xc3\xbcnchen", 8},
        Row{"ab\xff"
            "cd",
            2},
        Row{"a\xe2\x82", 1}, Row{"\x80", 0}, Row{"\xc0\xaf", 0}, Row{"\xf0\x9f\x98\x80!\xf8", 5},
        Row{"\xf4\x90\x80\x80", 0}, Row{"\xf0\x8f\xbf\xbf", 0}}) {
    EXPECT_EQ(utf8_prefix(row.text), row.prefix) << testing::PrintToString(row.text);
  }
}

}  // namespace
}  // namespace muster
