#include "common/base/duration.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/controls.h"
#include "common/base/decimal.h"

namespace muster {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
// The longer name comes first where one name starts another ("ms" before "m").
constexpr auto kTimes = std::to_array<Unit>({{"ms", 1'000'000},
                                             {"s", 1'000'000'000},
                                             {"m", 60'000'000'000},
                                             {"h", 3'600'000'000'000},
                                             {"d", 86'400'000'000'000}});
constexpr std::uint64_t kMost = 10'000 * 86'400'000'000'000ULL;
constexpr std::size_t kShownMost = 60;

std::optional<std::uint64_t> take_unit(std::string_view& text) {
  for (const Unit& unit : kTimes) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.factor;
  }
  return std::nullopt;
}

// For "5" the message lists all units, because only the writer knows which one is meant.
std::string with_units(std::string_view text) {
  if (text.find_first_not_of("0123456789.") != std::string_view::npos)
    return "one behind each number";
  const std::string number(text);
  return number + "s, " + number + "m or " + number + "h";
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    std::size_t cut = std::min(text.size(), kShownMost);
    // Do not cut inside a UTF-8 character.
    while (cut < text.size() && cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U)
      --cut;
    const std::string shown =
        without_controls(text.substr(0, cut)) + (cut < text.size() ? "..." : "");
    return fail(ErrorCode::InvalidArgument,
                "'" + shown + "' " + why + " (30s, 10m, 24h, 7d, 1.5s, 1h30m)");
  };
  if (text == "0") return Duration::zero();
  std::uint64_t total = 0;
  std::string_view rest = text;
  if (rest.empty()) return wrong("is not a duration");
  while (!rest.empty()) {
    const auto number = Decimal::take(rest);
    if (!number) return wrong("is not a duration");
    if (rest.empty()) return wrong("is a number without a unit; write " + with_units(text));
    const auto factor = take_unit(rest);
    if (!factor) return wrong("is not a duration");
    const auto part = number->times(*factor);
    if (!part || *part > kMost || total + *part > kMost) return wrong("is longer than 10000 days");
    total += *part;
  }
  return Duration(static_cast<std::int64_t>(total));
}

}  // namespace muster
