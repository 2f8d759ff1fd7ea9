// A Decimal is an exact decimal number such as "12" or "1.5". Plain values.
//
// There is no floating point between what a person wrote and what is counted.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

struct Decimal {
  std::uint64_t whole = 0, fraction = 0, scale = 1;

  // Removes a number from the front of `text`. It may have at most 9 digits after the point.
  // Returns nothing if `text` does not begin with such a number.
  static std::optional<Decimal> take(std::string_view& text) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    Decimal result;
    if (text.empty() || !digit(text[0])) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.whole);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.size() < 2 || text[0] != '.' || !digit(text[1])) return result;
    text.remove_prefix(1);
    for (int places = 0; !text.empty() && digit(text[0]); text.remove_prefix(1), ++places) {
      if (places == 9) return std::nullopt;
      result.fraction = result.fraction * 10 + static_cast<std::uint64_t>(text[0] - '0');
      result.scale *= 10;
    }
    return result;
  }

  // Returns nothing if the product does not fit.
  [[nodiscard]] std::optional<std::uint64_t> times(std::uint64_t factor) const {
    std::uint64_t value = 0;
    if (__builtin_mul_overflow(whole, factor, &value)) return std::nullopt;
    // fraction * factor may need more than 64 bits. With scale and fraction at most 1e9, the two
    // parts never do.
    const std::uint64_t part = factor / scale * fraction + factor % scale * fraction / scale;
    if (__builtin_add_overflow(value, part, &value)) return std::nullopt;
    return value;
  }
};

}  // namespace muster
