// Parsers that take numbers and words from the front of a text, for grammars of log lines. Pure: no
// allocation, any bytes, any length, linear time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::engine {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Removes every leading byte that is one of `chars`.
inline void skip(std::string_view& text, std::string_view chars) {
  text.remove_prefix(std::min(text.find_first_not_of(chars), text.size()));
}
// Removes `what` from the front. False: `what` is not there, and nothing is removed.
inline bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}
// Removes digits from the front. Nothing: there are none, or the number is more than 2^63-1.
std::optional<std::int64_t> take_number(std::string_view& text);
// Removes a fraction such as "  20/ 1875", with blanks anywhere.
struct Fraction {
  std::int64_t part = 0, whole = 0;
};
std::optional<Fraction> take_fraction(std::string_view& text);

// The whole text as a number: digits only, at most 2^63-1.
std::optional<std::int64_t> whole_number(std::string_view text);
// The number at the start of the text, after blanks, an opening bracket and a plus: "1.25E-06",
// "[0.7341]", "nan", "inf". Nothing: there is no number, or it is out of range.
std::optional<double> leading_double(std::string_view text);
// As leading_double(), but the number must be finite.
std::optional<double> leading_finite(std::string_view text);
// The text without blanks and line ends at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace muster::engine
