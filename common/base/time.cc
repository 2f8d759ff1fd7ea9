#include "common/base/time.h"

#include <ctime>

namespace muster {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Now now() const override {
    return {.wall = WallTime(read(CLOCK_REALTIME)), .boot = BootTime(read(CLOCK_BOOTTIME))};
  }

 private:
  static Duration read(clockid_t id) {
    timespec value{};
    clock_gettime(id, &value);
    return std::chrono::seconds(value.tv_sec) + std::chrono::nanoseconds(value.tv_nsec);
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace muster
