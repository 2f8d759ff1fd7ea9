#include "controller/api/job_id.h"

#include <algorithm>
#include <string>

namespace muster::controller {

JobId JobIdSource::next(WallTime now) {
  constexpr char kDigits[] = "0123456789abcdefghjkmnpqrstvwxyz";
  const MutexLock lock(mutex_);
  const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(
      0, std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count()));
  const std::uint64_t fresh = (ms << 20) | (random_() & 0xf'ffff);
  // If two ids are in one millisecond, or the clock was set back: one more than the last id.
  last_ = std::max(fresh, last_ + 1);
  std::string text(kJobIdLength, '0');
  std::uint64_t rest = last_;
  for (std::size_t i = kJobIdLength; i-- > 0; rest >>= 5) text[i] = kDigits[rest & 31];
  return JobId(std::move(text));
}

}  // namespace muster::controller
