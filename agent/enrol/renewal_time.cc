#include "agent/enrol/renewal_time.h"

#include <algorithm>

#include "common/pki/authority.h"

namespace muster::agent {

WallTime renewal_time(const pki::Credentials& credentials, double jitter) {
  constexpr double kLatest = 1.0 / 12;  // of a life
  const WallTime made =
      std::min(credentials.not_before + pki::kClockDifference, credentials.not_after);
  const Duration life = credentials.not_after - made;
  const auto later = static_cast<Duration::rep>(static_cast<double>(life.count()) * kLatest *
                                                std::clamp(jitter, 0.0, 1.0));
  return made + life / 3 * 2 + Duration(later);
}

}  // namespace muster::agent
