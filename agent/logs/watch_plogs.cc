// The ranks' process logs. They are read from time to time while a rank runs, so that little is
// left to read when its end waits for the evidence.
#include "agent/logs/file_watch.h"

namespace muster::agent {
namespace {

constexpr Duration kPlogTrimApart = std::chrono::seconds(10);
constexpr std::uint64_t kPlogWhenFull = 1 << 20;

}  // namespace

void FileWatch::read_plogs(const Now& now) {
  const bool trim = now.boot >= plogs_at_;
  if (trim) plogs_at_ = now.boot + kPlogTrimApart;
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;
    for (const auto& [number, rank] : run->ranks) {
      if (!rank->plog) continue;
      rank->plog->read(buffer_, now, false);
      if (trim) rank->plog->trim(options_.plog_cap);
    }
  }
}

// The disk is nearly full: process logs are cut before any byte of a rank's own log.
void FileWatch::give_up_plogs() {
  for (const RunPtr& run : all_runs()) {
    for (const auto& [number, rank] : run->ranks)
      if (rank->plog) rank->plog->trim(kPlogWhenFull);
  }
}

// Takes the better line of both logs. `reported` is the quality of the line of the rank's own log.
void FileWatch::take_plog(WatchedRank& rank, RankEnd& answer, int reported) {
  const std::unique_ptr<PlogReader> plog = std::move(rank.plog);
  if (!plog) return;
  const Now now = system_clock().now();
  plog->read(buffer_, now, true);
  FoundEvidence found = plog->evidence(now.boot);
  plog->trim(options_.plog_cap);
  if (found.rank <= reported) return;
  answer.evidence = std::move(found.line);
  answer.evidence_kind = found.kind;
}

}  // namespace muster::agent
