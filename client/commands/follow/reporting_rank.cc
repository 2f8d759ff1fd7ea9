#include "client/commands/follow/reporting_rank.h"

#include <utility>

namespace muster::client {

std::vector<ReportingRank::Line> ReportingRank::on_progress(const v1::Progress& progress) {
  if (!progress.has_step() || progress.attempt() < attempt_) return {};
  const bool same = progress.attempt() == attempt_;
  if (same && rank_ && progress.reporting_rank() >= *rank_) return {};
  attempt_ = progress.attempt();
  rank_ = progress.reporting_rank();
  std::vector<Line> shown;
  std::deque<Line> still;
  buffered_bytes_ = 0;
  for (Line& line : buffered_) {
    if (line.rank == *rank_) {
      shown.push_back(std::move(line));
    } else if (line.rank < *rank_ || line.attempt > attempt_) {
      buffered_bytes_ += line.text.size();
      still.push_back(std::move(line));
    } else {
      ++dropped_;
    }
  }
  buffered_ = std::move(still);
  return shown;
}

bool ReportingRank::on_line(std::uint32_t attempt, std::uint32_t rank, std::string_view text) {
  if (speaks(rank)) return true;
  const bool may_speak_yet = !rank_ || rank < *rank_ || attempt > attempt_;
  if (!may_speak_yet || attempt < attempt_) {
    ++dropped_;
    return false;
  }
  buffered_.push_back({.attempt = attempt, .rank = rank, .text = std::string(text)});
  buffered_bytes_ += text.size();
  while (buffered_.size() > kBufferedLinesMost || buffered_bytes_ > kBufferedBytesMost)
    drop_oldest();
  return false;
}

void ReportingRank::drop_oldest() {
  buffered_bytes_ -= buffered_.front().text.size();
  buffered_.pop_front();
  ++dropped_;
}

}  // namespace muster::client
