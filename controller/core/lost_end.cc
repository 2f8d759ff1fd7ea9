#include "controller/core/lost_end.h"

#include <algorithm>

#include "controller/core/spec_view.h"

namespace muster::core {

AttemptNo next_attempt(const JobRecord& job, const Presence& presence) {
  std::uint32_t last = job.attempts.empty() ? 0 : job.attempts.back().number.value;
  last += job.attempts_lost;
  if (const auto told = presence.numbers_told.find(job.id); told != presence.numbers_told.end()) last = std::max(last, told->second.value);
  return AttemptNo(last + 1);
}

std::optional<Unheard> unheard_since_loss(const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now, const Limits& limits) {
  if (job.attempts_lost == 0) return std::nullopt;
  Unheard unheard{.nodes = {}, .until = presence.listening_since + outlives_contact(job.spec) + limits.grace_margin};
  if (now.boot >= unheard.until) return std::nullopt;
  for (const auto& [name, node] : ledger.nodes) {
    const auto seen = presence.nodes.find(name);
    if (!node.dead && (seen == presence.nodes.end() || !seen->second.heard)) unheard.nodes.push_back(name);
  }
  if (unheard.nodes.empty()) return std::nullopt;
  return unheard;
}

}  // namespace muster::core
