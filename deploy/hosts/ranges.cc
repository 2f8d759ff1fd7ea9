#include "deploy/hosts/ranges.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "common/spec/keys/values.h"

namespace muster::hosts {
namespace {

constexpr std::size_t kDigitsMost = 9;

std::optional<std::uint32_t> number_of(std::string_view digits) {
  std::uint32_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || digits.size() > kDigitsMost || error != std::errc() || rest != end)
    return std::nullopt;
  return value;
}

std::unexpected<Error> wrong_range(std::string_view text, std::string_view why) {
  return fail(ErrorCode::InvalidArgument,
              fmt::format("'{}': {}; a range is written node[01-16] or node[1,3-5]",
                          spec::shown(text), why));
}

}  // namespace

bool has_range(std::string_view text) { return text.find_first_of("[]") != std::string_view::npos; }

Result<std::vector<std::string>> expand_range(std::string_view text, std::size_t most) {
  if (!has_range(text)) return std::vector{std::string(text)};
  const std::size_t open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return wrong_range(text, "a bracket is not closed");
  const std::string_view before = text.substr(0, open), after = text.substr(close + 1);
  if (has_range(after)) return wrong_range(text, "two ranges in one name");
  std::string_view list = text.substr(open + 1, close - open - 1);
  if (has_range(list)) return wrong_range(text, "a bracket within a bracket");
  std::vector<std::string> names;
  for (bool more = true; more;) {
    const std::size_t comma = list.find(',');
    more = comma != std::string_view::npos;
    const std::string_view part = list.substr(0, comma);
    list.remove_prefix(more ? comma + 1 : list.size());
    const std::size_t dash = part.find('-');
    const std::string_view low = part.substr(0, dash);
    const auto first = number_of(low);
    const auto last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1));
    if (!first || !last)
      return wrong_range(text,
                         fmt::format("'{}' is not a number or FIRST-LAST", spec::shown(part)));
    if (*last < *first)
      return wrong_range(text, fmt::format("'{}' runs backwards", spec::shown(part)));
    if (*last - *first >= most || names.size() + (*last - *first) >= most)
      return wrong_range(text, fmt::format("more than {} names", most));
    for (std::uint32_t number = *first; number <= *last; ++number)
      names.push_back(fmt::format("{}{:0{}}{}", before, number, low.size(), after));
  }
  return names;
}

}  // namespace muster::hosts
