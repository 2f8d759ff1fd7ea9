#include "controller/core/journal_end/lost_end.h"

#include <algorithm>

#include "controller/core/model/spec_view.h"
#include "controller/core/recovery/start_failures.h"

namespace muster::core {

bool scans_first(const JobRecord& job, const AttemptRecord& attempt) {
  if (!resumes(job.spec)) return false;
  bool left_out = false;
  std::uint32_t before = 0;
  for (const AttemptRecord& one : job.attempts) {
    left_out = left_out || one.number.value > before + 1;
    if (one.number == attempt.number) break;
    const auto scanned = [](const NodePart& part) {
      return !part.idle() &&
             (part.started || (part.start_failed && found_newer(*part.start_failed)));
    };
    if (std::ranges::any_of(one.parts, scanned)) left_out = false;
    before = one.number.value;
  }
  return left_out;
}

std::optional<Unheard> unheard_since_start(const Ledger& ledger, const Presence& presence,
                                           const JobRecord& job, Now now, const Limits& limits) {
  const bool lost = job.attempts_lost > 0;
  const Duration first = lost ? limits.hear_after_loss : limits.hear_first;
  const Duration wait =
      lost ? std::max(first, outlives_contact(job.spec) + limits.grace_margin) : first;
  Unheard unheard{.nodes = {}, .until = presence.listening_since + wait};
  if (now.boot >= unheard.until) return std::nullopt;
  for (const auto& [name, node] : ledger.nodes) {
    const auto seen = presence.nodes.find(name);
    if (!node.dead && (seen == presence.nodes.end() || !seen->second.heard))
      unheard.nodes.push_back(name);
  }
  if (!unheard.nodes.empty()) return unheard;
  unheard.until = presence.listening_since + first;
  return lost && now.boot < unheard.until ? std::optional(unheard) : std::nullopt;
}

JournalEndLost end_lost(const Lineage& before, const LostEnd& lost, std::string id,
                        std::uint64_t ticks) {
  const std::uint64_t generation = std::max(before.generation, lost.generation) + 1;
  // Each unknown loss among the lost rows moved the numbers on by less than twice kAttemptsUnknown.
  const std::uint64_t losses = std::min(generation - before.generation, kGenerationsBeyondMost + 1);
  const bool known = lost.rows && *lost.rows < kAttemptsUnknown;
  const std::uint64_t skipped =
      known ? *lost.rows : (2 * losses - 1) * kAttemptsUnknown + ticks % kAttemptsUnknown;
  return {.lineage = {.generation = generation, .id = std::move(id)},
          .attempts_skipped = static_cast<std::uint32_t>(skipped)};
}

bool believable_reach(const AgentReach& reported, const Reach& reach) {
  if (reported.lineage.generation > reach.lineage.generation &&
      reported.lineage.generation - reach.lineage.generation > kGenerationsBeyondMost)
    return false;
  if (reported.lineage != reach.lineage) return true;  // its numbers are compared with nothing
  return reported.epoch.value <= reach.epoch.value + kEpochsBeyondMost &&
         reported.acked.value <= reach.last.value + kRowsBeyondMost;
}

// Epochs are used once in a lineage. An agent that has seen this epoch has either been connected to
// this incarnation, or another incarnation started from the same copy. For an earlier epoch,
// everything that was acknowledged was in the journal when this incarnation began. The journal's
// growth since then explains nothing. A lineage before this one was given up, and so was everything
// that agents have seen of it.
bool reaches_beyond(const AgentReach& reported, const Reach& reach) {
  if (reported.lineage != reach.lineage)
    return reported.lineage.generation >= reach.lineage.generation;
  if (reported.epoch > reach.epoch || (reported.epoch == reach.epoch && !reported.welcomed))
    return true;
  return reported.acked > (reported.epoch == reach.epoch ? reach.last : reach.loaded);
}

}  // namespace muster::core
