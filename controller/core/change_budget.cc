#include "controller/core/change_budget.h"

#include <chrono>

namespace muster::core {
namespace {

constexpr Duration kHour = std::chrono::hours(1);

}  // namespace

std::size_t ChangeBudget::left_over(const Used& used, BootTime now) {
  const auto passed = static_cast<std::size_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now - used.at).count());
  const std::size_t back = passed * kBytesAnHour / 3'600'000;
  return back >= used.bytes ? 0 : used.bytes - back;
}

bool ChangeBudget::take(const NodeName& node, std::size_t inventory_bytes, BootTime now) {
  if (now - swept_at_ > kHour) {
    swept_at_ = now;
    std::erase_if(used_, [now](const auto& entry) { return left_over(entry.second, now) == 0; });
  }
  Used& used = used_[node];
  const std::size_t before = left_over(used, now);
  const std::size_t after = before + inventory_bytes + kBytesOfRow;
  if (after > kBytesAnHour) return false;
  used = {.bytes = after, .at = now};
  return true;
}

}  // namespace muster::core
