#include "controller/core/core.h"

namespace muster::core {

std::vector<Assignment> desired(const Ledger& ledger, const NodeName& node) {
  std::vector<Assignment> wanted;
  const auto parts = ledger.node_parts.find(node);
  if (parts == ledger.node_parts.end()) return wanted;
  for (const auto& [job, number] : parts->second.unswept) {
    const AttemptState state = ledger.jobs.at(job).attempt(number)->state;
    wanted.push_back({.job = job, .attempt = number, .want = state == AttemptState::Live ? Want::Run : Want::Stop});
  }
  for (const auto& [job, number] : parts->second.closed) wanted.push_back({.job = job, .attempt = number, .want = Want::Forget});
  return wanted;
}

bool may_forget(const Ledger& ledger, const NodeName& node, const JobId& job, AttemptNo attempt) {
  if (ledger.tombstones.contains(job)) return true;
  const auto found = ledger.jobs.find(job);
  const AttemptRecord* record = found == ledger.jobs.end() ? nullptr : found->second.attempt(attempt);
  const NodePart* part = record == nullptr ? nullptr : record->part(node);
  return part != nullptr && part->closed();
}

}  // namespace muster::core
