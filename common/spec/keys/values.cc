#include "common/spec/keys/values.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "common/base/controls.h"
#include "common/base/decimal.h"
#include "common/base/utf8.h"

namespace muster::spec {
namespace {

constexpr std::uint32_t kDeviceMax = 1024;

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr auto kSizes = std::to_array<Unit>({{"KiB", 1ull << 10},
                                             {"MiB", 1ull << 20},
                                             {"GiB", 1ull << 30},
                                             {"TiB", 1ull << 40},
                                             {"K", 1ull << 10},
                                             {"M", 1ull << 20},
                                             {"G", 1ull << 30},
                                             {"T", 1ull << 40}});

bool digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::uint64_t> take_unit(std::string_view& text, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.factor;
  }
  return std::nullopt;
}

}  // namespace

std::string format_duration(Duration duration) {
  auto rest = static_cast<std::uint64_t>(duration.count());
  if (rest == 0) return "0";
  std::string text;
  for (const auto& [name, factor] :
       {Unit{"d", 86'400'000'000'000}, Unit{"h", 3'600'000'000'000}, Unit{"m", 60'000'000'000}}) {
    if (rest / factor > 0) text += fmt::format("{}{}", rest / factor, name);
    rest %= factor;
  }
  if (rest == 0) return text;
  std::string fraction = fmt::format("{:09}", rest % 1'000'000'000);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  text += fmt::format("{}{}{}s", rest / 1'000'000'000, fraction.empty() ? "" : ".", fraction);
  return text;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' is not a size (1024, 64KiB, 512MiB, 1.5GiB)", shown(text)));
  };
  std::string_view rest = text;
  if (rest.empty()) return wrong();
  const auto number = Decimal::take(rest);
  if (!number) return wrong();
  std::uint64_t factor = 1;
  if (!rest.empty()) {
    const auto unit = take_unit(rest, kSizes);
    if (!unit || !rest.empty()) return wrong();
    factor = *unit;
  }
  const auto value = number->times(factor);
  if (!value) return wrong();
  return *value;
}

Result<std::uint64_t> parse_thousandths(std::string_view text) {
  std::string_view rest = text;
  const auto number = rest.empty() ? std::nullopt : Decimal::take(rest);
  const auto value = number && number->scale <= 1000 ? number->times(1000) : std::nullopt;
  if (!value || !rest.empty())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' is not a number with at most three decimals", shown(text)));
  return *value;
}

Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || !digit(text[0]) || end != text.data() + text.size() ||
      error == std::errc::invalid_argument)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' is not a whole number ({}..{})", shown(text), least, most));
  if (error != std::errc() || value < least || value > most)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{} is out of range ({}..{})", shown(text), least, most));
  return value;
}

Result<std::vector<std::uint32_t>> parse_device_range(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' {} (8 | \"[4,8)\" | [0,2])", shown(text), why));
  };
  std::uint32_t first = 0, end = 0;
  const auto number = [](std::string_view part, std::uint32_t& value) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && !part.empty() && stop == part.data() + part.size();
  };
  const std::size_t comma = text.find(',');
  if (!text.starts_with('[') || !text.ends_with(')') || comma == std::string_view::npos ||
      !number(text.substr(1, comma - 1), first) ||
      !number(text.substr(comma + 1, text.size() - comma - 2), end))
    return wrong("is neither a number nor a range of devices");
  if (first >= end) return wrong("is an empty range: its end does not belong to it");
  if (end > kDeviceMax) return wrong("goes beyond device 1023");
  std::vector<std::uint32_t> devices;
  for (std::uint32_t device = first; device < end; ++device) devices.push_back(device);
  return devices;
}

std::string shown(std::string_view text) {
  if (text.size() <= 60) return without_controls(text);
  std::string result(text.substr(0, 60));
  // Do not cut inside a UTF-8 character.
  while (!result.empty() && (static_cast<unsigned char>(result.back()) & 0xC0) == 0x80)
    result.pop_back();
  if (!result.empty() && static_cast<unsigned char>(result.back()) >= 0xC0) result.pop_back();
  return without_controls(result) + "...";
}

std::string readable(std::string_view message) {
  std::string result;
  while (!message.empty()) {
    const std::size_t sound = utf8_prefix(message);
    result += without_controls(message.substr(0, sound), "\n");
    message.remove_prefix(sound);
    if (message.empty()) break;
    result.push_back('?');
    message.remove_prefix(1);
  }
  return result;
}

}  // namespace muster::spec
