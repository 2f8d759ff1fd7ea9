#include "common/base/time.h"

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace muster {
namespace {

// A value that is no number counts as none.
Duration wall_clock_offset() {
  const char* value = std::getenv(kWallClockOffsetVariable);
  const std::string_view text = value == nullptr ? "" : value;
  std::int32_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return std::chrono::milliseconds(milliseconds);
}

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Now now() const override {
    return {.wall = WallTime(read(CLOCK_REALTIME) + offset_),
            .boot = BootTime(read(CLOCK_BOOTTIME))};
  }

 private:
  static Duration read(clockid_t id) {
    timespec value{};
    clock_gettime(id, &value);
    return std::chrono::seconds(value.tv_sec) + std::chrono::nanoseconds(value.tv_nsec);
  }
  const Duration offset_ = wall_clock_offset();
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

std::string utc_text(WallTime time) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[40];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace muster
