#include "agent/logs/process_logs.h"

namespace muster::agent {
namespace {

constexpr Duration kTrimApart = std::chrono::seconds(10);
constexpr std::uint64_t kWhenDiskIsFull = 1 << 20;  // bytes that stay of one rank's

}  // namespace

void ProcessLogs::poll(const Now& now) {
  const bool trim = now.boot >= trim_at_;
  if (trim) trim_at_ = now.boot + kTrimApart;
  for (const auto& [rank, reader] : readers_) {
    reader->read(tools_.buffer, now, false);
    if (trim) reader->trim(tools_.options.plog_cap);
  }
}

bool ProcessLogs::explain(RankEnding& ending) {
  if (!ending.failed) return true;
  const auto reader = readers_.extract(ending.rank.value);
  if (reader.empty()) return true;
  PlogReader& plog = *reader.mapped();
  const Now now = system_clock().now();
  plog.read(tools_.buffer, now, true);
  FoundEvidence found = plog.evidence(now.boot);
  plog.trim(tools_.options.plog_cap);
  if (found.rank <= ending.quality) return true;
  ending.answer.evidence = std::move(found.line);
  ending.answer.evidence_kind = found.kind;
  ending.quality = found.rank;
  return true;
}

void ProcessLogs::free_room() {
  for (const auto& [rank, reader] : readers_) reader->trim(kWhenDiskIsFull);
}

}  // namespace muster::agent
