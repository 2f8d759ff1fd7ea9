#include "controller/core/nodes/drain.h"

#include <fmt/format.h>

#include "controller/core/nodes/actor_text.h"

namespace muster::core {

std::string drain_text(const NodeDrained& drain) {
  return fmt::format("drains ({}{}{})", actor_text(drain.actor), drain.why.empty() ? "" : ": ",
                     drain.why);
}

std::optional<AttemptKey> uploads_there(const Ledger& ledger, const NodeName& node) {
  const auto parts = ledger.indexes.node_parts.find(node);
  if (parts == ledger.indexes.node_parts.end()) return std::nullopt;
  for (const AttemptKey& key : parts->second.open) {
    const NodePart& part = *ledger.jobs.at(key.first).attempt(key.second)->part(node);
    if (part.uploads || part.uploads_logs) return key;
  }
  return std::nullopt;
}

bool runs_nothing(const Ledger& ledger, const NodeName& node) {
  const auto parts = ledger.indexes.node_parts.find(node);
  return !ledger.indexes.device_holders.contains(node) && !uploads_there(ledger, node) &&
         (parts == ledger.indexes.node_parts.end() || parts->second.unswept.empty());
}

DrainCheck check_drains(const Ledger& ledger, const AttemptRecord& attempt, Now now) {
  DrainCheck check;
  for (const NodePart& part : attempt.parts) {
    // An idle part counts, too: a process on another node may use its devices.
    if (part.swept) continue;
    const auto node = ledger.nodes.find(part.placed.node);
    if (node == ledger.nodes.end() || !node->second.drain || !node->second.drain->deadline)
      continue;
    const Duration left = *node->second.drain->deadline - now.wall;
    if (left <= Duration::zero()) {
      check.over = &node->second;
      return check;
    }
    const BootTime at = now.boot + left;
    check.check_at = std::min(check.check_at.value_or(at), at);
  }
  return check;
}

std::string drain_over_text(const NodeRecord& node) {
  return fmt::format("node '{}' {}, and its deadline is over", node.name.str(),
                     drain_text(*node.drain));
}

}  // namespace muster::core
