// "12" and "1.5", exactly: no floating point between what a person wrote and what is counted. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

struct Decimal {
  std::uint64_t whole = 0, fraction = 0, scale = 1;

  // Off the front of `text`; at most 9 digits behind the point. Nothing: it begins with none.
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

  // Nothing: it does not fit.
  [[nodiscard]] std::optional<std::uint64_t> times(std::uint64_t factor) const {
    std::uint64_t value = 0;
    if (__builtin_mul_overflow(whole, factor, &value)) return std::nullopt;
    // fraction * factor may need more than 64 bits; in two parts, with scale and fraction at most
    // 1e9, neither does.
    const std::uint64_t part = factor / scale * fraction + factor % scale * fraction / scale;
    if (__builtin_add_overflow(value, part, &value)) return std::nullopt;
    return value;
  }
};

}  // namespace muster
