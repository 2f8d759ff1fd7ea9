#include "common/text/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace muster {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr auto kUnits = std::to_array<Unit>(
    {{"TiB", 1ULL << 40U}, {"GiB", 1ULL << 30U}, {"MiB", 1ULL << 20U}, {"KiB", 1ULL << 10U}});

const Unit& unit_of(std::uint64_t bytes) {
  const auto fits =
      std::ranges::find_if(kUnits, [&](const Unit& unit) { return bytes >= unit.bytes; });
  return fits == kUnits.end() ? kUnits.back() : *fits;
}

std::string in_units(std::uint64_t bytes, const Unit& unit) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / static_cast<double>(unit.bytes));
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  const Unit& unit = unit_of(bytes);
  return fmt::format("{} {}", in_units(bytes, unit), unit.name);
}

std::string part_text(std::uint64_t bytes, std::uint64_t size) {
  const Unit& unit = unit_of(size);
  return fmt::format("{} of {} {}", in_units(std::min(bytes, size), unit), in_units(size, unit),
                     unit.name);
}

}  // namespace muster
