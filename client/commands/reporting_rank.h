// Which lines of a job's many ranks a pipe gets to see: the reporting rank's, in their order, none
// lost.
// The reporting rank is the lowest rank that prints steps (controller/api: progress), so who it is
// shows
// only with the first steps, and the first reading may name a rank that a lower one then takes over
// from:
//
//   before the first reading   rank 0 is shown, the others' lines are held back
//   a reading                  its rank is the reporting rank; its held lines come out; the ranks
//                              below
//                              it are still held back
//   a lower rank's step        takes over, its held lines come out; a higher one's does not (its
//                              node only reconnected first)
//   a new attempt              the last one's reporting rank speaks until a reading of the new one
//                              names
//                              another
//
// Held lines are bounded; what is not shown in the end is counted. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/job.pb.h"

namespace muster::client {

class ReportingRank {
 public:
  static constexpr std::size_t kBufferedLinesMost = 4096, kBufferedBytesMost = 4 << 20;

  struct Line {
    std::uint32_t attempt = 0, rank = 0;
    std::string text;
  };
  // Answers the lines that were held back and are to be shown now.
  std::vector<Line> on_progress(const v1::Progress& progress);
  // As far as is known, it is the reporting rank.
  [[nodiscard]] bool speaks(std::uint32_t rank) const { return rank == rank_.value_or(0); }
  // Whether to show it now.
  bool on_line(std::uint32_t attempt, std::uint32_t rank, std::string_view text);
  // Lines that were not shown, those held included.
  [[nodiscard]] std::uint64_t not_shown() const { return dropped_ + buffered_.size(); }

 private:
  void drop_oldest();

  std::optional<std::uint32_t> rank_;  // of attempt_ or an earlier one
  std::uint32_t attempt_ = 0;          // of the latest reading
  std::deque<Line> buffered_;
  std::size_t buffered_bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace muster::client
