#include "controller/core/decide.h"

#include "controller/core/chains/predecessors.h"

namespace muster::core {

Decision decide(const Ledger& ledger, const Presence& presence, const Input& input, Now now,
                const Limits& limits) {
  const Deciding in{.ledger = ledger, .presence = presence, .now = now, .limits = limits};
  Decision decision = std::visit([&](const auto& one) { return decide_one(in, one); }, input);
  follow_ends(ledger, decision);
  return decision;
}

Current current_of(const Ledger& ledger, const JobId& job, AttemptNo attempt) {
  const auto found = ledger.jobs.find(job);
  if (found == ledger.jobs.end()) return {};
  const AttemptRecord* current = found->second.current();
  if (current == nullptr || current->number != attempt) return {};
  return {.job = &found->second, .attempt = current};
}

}  // namespace muster::core
