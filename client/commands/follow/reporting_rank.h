// A ReportingRank selects which lines of a job's many ranks are printed: those of the reporting
// rank, in their order, without a loss. The Follower of follow.cc owns one. Pure; one thread.
//
// The reporting rank is the lowest rank that prints steps (controller/api: progress). So it is
// known only after the first steps, and the first reading may name a rank that a lower rank
// replaces later:
//
//   before the first reading   rank 0 is shown; the lines of other ranks are buffered
//   a reading                  its rank is the reporting rank; its buffered lines come out; the
//                              lines of lower ranks stay buffered
//   a lower rank's step        takes over, its buffered lines come out; a higher one's does not
//                              (its node only reconnected first)
//   a new attempt              the last one's reporting rank stays until a reading of the new
//                              attempt names another
//
// The buffer is bounded. Lines that are never shown are counted.
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
  // Returns the buffered lines that are to be printed now.
  std::vector<Line> on_progress(const v1::Progress& progress);
  // True if `rank` is the reporting rank, as far as is known.
  [[nodiscard]] bool speaks(std::uint32_t rank) const { return rank == rank_.value_or(0); }
  // Returns whether to print the line now.
  bool on_line(std::uint32_t attempt, std::uint32_t rank, std::string_view text);
  // Counts the lines that were not printed, with the buffered ones.
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
