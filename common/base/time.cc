#include "common/base/time.h"

#include <ctime>

#include "common/base/wall_clock_offset.h"

namespace muster {
namespace {

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
  const Duration offset_ = wall_clock_offset().value_or(Duration{});
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
