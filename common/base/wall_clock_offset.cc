#include "common/base/wall_clock_offset.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>

namespace muster {

Result<Duration> parse_wall_clock_offset(std::string_view text) {
  if (text.empty()) return Duration{};
  std::int32_t milliseconds = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, milliseconds);
  if (error == std::errc() && rest == end) return Duration(std::chrono::milliseconds(milliseconds));
  return fail(ErrorCode::InvalidArgument,
              "reading the environment: " + std::string(kWallClockOffsetVariable) + "='" +
                  std::string(text) +
                  "' is not a number of milliseconds, at most 24 days "
                  "(2147483647)");
}

Result<Duration> wall_clock_offset() {
  const char* value = std::getenv(kWallClockOffsetVariable);
  return parse_wall_clock_offset(value == nullptr ? "" : value);
}

}  // namespace muster
