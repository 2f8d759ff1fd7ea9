// The rules of recovery.
#include <fmt/format.h>

#include "common/spec/rules/checks.h"

namespace muster::spec {

void complete_recovery(Draft& draft) {
  v1::RecoverySpec& recovery = *draft.spec.mutable_recovery();
  if (!recovery.has_max_restarts()) recovery.set_max_restarts(20);
  if (recovery.max_restarts() > 100'000)
    draft.problem("recovery.max_restarts",
                  fmt::format("{} is out of range ({})", recovery.max_restarts(),
                              accepted_of("recovery.max_restarts")));
  using std::chrono::hours, std::chrono::minutes, std::chrono::seconds;
  if (!recovery.has_window()) recovery.mutable_window()->set_seconds(seconds(hours(24)).count());
  if (!recovery.has_orphan_grace())
    recovery.mutable_orphan_grace()->set_seconds(seconds(minutes(30)).count());
  if (!recovery.has_stop_grace()) recovery.mutable_stop_grace()->set_seconds(10);
  check_duration(draft, "recovery.window", recovery.window(), seconds(1), hours(365 * 24));
  check_duration(draft, "recovery.orphan_grace", recovery.orphan_grace(), seconds(5),
                 hours(7 * 24));
  check_duration(draft, "recovery.stop_grace", recovery.stop_grace(), seconds(0), hours(1));
  check_duration(draft, "recovery.backoff", recovery.backoff(), seconds(0), hours(24));
  // Zero is absent, so that the spec is the same as one without the key.
  if (recovery.backoff().seconds() == 0 && recovery.backoff().nanos() == 0)
    recovery.clear_backoff();
}

}  // namespace muster::spec
