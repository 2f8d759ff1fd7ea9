#include <algorithm>
#include <ranges>

#include "common/engine/model/engine.h"
#include "controller/core/core.h"
#include "controller/core/recovery/log_uploads.h"
#include "controller/core/recovery/uploads.h"

namespace muster::core {
namespace {

// Every rank has ended well. The auxiliary processes (MindSpore's scheduler) ended with the last
// rank, or have nothing left to do. They are not stopped earlier, because ranks on other nodes need
// them.
bool auxiliaries_are_over(const JobRecord& job) {
  return job.phase == JobPhase::Completing && engine::has_scheduler(job.spec);
}

}  // namespace

std::vector<Assignment> desired(const Ledger& ledger, const NodeName& node) {
  std::vector<Assignment> wanted;
  const auto parts = ledger.indexes.node_parts.find(node);
  if (parts == ledger.indexes.node_parts.end()) return wanted;
  for (const auto& [job, number] : parts->second.unswept) {
    const JobRecord& record = ledger.jobs.at(job);
    const bool runs =
        record.attempt(number)->state == AttemptState::Live && !auxiliaries_are_over(record);
    wanted.push_back({.job = job, .attempt = number, .want = runs ? Want::Run : Want::Stop});
  }
  for (const auto& [job, number] : parts->second.open) {
    const JobRecord& record = ledger.jobs.at(job);
    const AttemptRecord& attempt = *record.attempt(number);
    if (const auto due = upload_due(record, attempt, *attempt.part(node)))
      wanted.push_back({.job = job, .attempt = number, .want = Want::Upload, .upload = *due});
    if (logs_due(*attempt.part(node)))
      wanted.push_back(
          {.job = job, .attempt = number, .want = Want::Upload, .upload = {.logs = true}});
  }
  const auto& closed = parts->second.closed;
  const auto newest =
      std::prev(closed.end(), static_cast<std::ptrdiff_t>(std::min(closed.size(), kForgetListMax)));
  for (const auto& [index, key] : std::ranges::subrange(newest, closed.end()))
    wanted.push_back({.job = key.first, .attempt = key.second, .want = Want::Forget});
  return wanted;
}

bool may_forget(const Ledger& ledger, const NodeName& node, const JobId& job, AttemptNo attempt) {
  if (ledger.tombstones.contains(job)) return true;
  const auto found = ledger.jobs.find(job);
  const AttemptRecord* record =
      found == ledger.jobs.end() ? nullptr : found->second.attempt(attempt);
  const NodePart* part = record == nullptr ? nullptr : record->part(node);
  return part != nullptr && part->closed();
}

}  // namespace muster::core
