#include "common/engine/files/line_fields.h"

#include <charconv>
#include <cmath>

namespace muster::engine {

std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  if (text.empty() || !is_digit(text[0])) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<Fraction> take_fraction(std::string_view& text) {
  std::string_view rest = text;
  skip(rest, " ");
  const auto part = take_number(rest);
  skip(rest, " ");
  if (!part || !take(rest, "/")) return std::nullopt;
  skip(rest, " ");
  const auto whole = take_number(rest);
  skip(rest, " ");
  if (!whole) return std::nullopt;
  text = rest;
  return Fraction{*part, *whole};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto number = take_number(text);
  return text.empty() ? number : std::nullopt;
}

std::optional<double> leading_double(std::string_view text) {
  skip(text, " \t[+");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  // "loss info" has no number, although it has "inf"
  if (!std::isfinite(value) && end != text.data() + text.size() && is_word(*end))
    return std::nullopt;
  return value;
}

std::optional<double> leading_finite(std::string_view text) {
  const auto value = leading_double(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  skip(text, kBlank);
  const std::size_t last = text.find_last_not_of(kBlank);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace muster::engine
