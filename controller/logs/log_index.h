// rank-N.index: what a log's bytes do not say themselves (proto/muster/logs/v1: IndexRecord). The
// mapping between logical offsets and those of the file, which holds the bytes without the gaps.
// Values and one append file; its owner (LogStore) locks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/io/unique_fd.h"
#include "controller/logs/log_store.h"

namespace muster::logs {

// A time point stands for the bytes that arrived within this time behind it; what comes later has a
// point of its own.
// Long enough that the index of a log that grows all the time stays small: 230 KB a day.
inline constexpr Duration kTimeStep = std::chrono::seconds(10);

class LogIndex {
 public:
  // Not there: empty, and not made before the first record. Damaged (power cut): a copy is
  // kept as *.damaged, and the index ends before the first record that is not sound. What stood
  // before it is as true as ever: without its gaps, every byte behind them would move.
  static Result<LogIndex> load(std::filesystem::path path,
                               std::function<int(int)> sync_call = SyncCalls().file);

  Result<void> add_gap(Gap gap);
  Result<void> add_time(std::uint64_t offset, WallTime at);
  Result<void> add_end(std::uint64_t size);
  Result<void> add_evicted(std::uint64_t to, WallTime at);

  // Of the log whose index is in `path` and which has `end` bytes: the logical offset from which on
  // bytes may have arrived at `time` or later; everything before it arrived earlier. Reads the file
  // alone, so that nobody who writes has to wait. No time point at all (a lost index): 0.
  static Result<std::uint64_t> since(const std::filesystem::path& path, WallTime time,
                                     std::uint64_t end);

  // The log holds only `size` bytes: what the index says of bytes beyond never happened (power
  // cut).
  Result<void> forget_beyond(std::uint64_t size);
  // Closes the file; the next add opens it again, and reads nothing: it is known how long the file
  // is.
  void close() { fd_.reset(); }
  // A descriptor of its own for a sync without the owner's lock. Makes the file when it is not
  // there.
  Result<io::UniqueFd> sync_handle();
  // A sync of such a descriptor failed: nobody knows what of the file is on the disk. It is written
  // anew before it is used again.
  void sync_failed() { rewrite_due_ = true; }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // of the byte at `physical`; behind a gap that begins there
  [[nodiscard]] std::uint64_t logical(std::uint64_t physical) const;
  // inside a gap: of the first byte behind it
  [[nodiscard]] std::uint64_t physical(std::uint64_t logical) const;
  [[nodiscard]] const std::vector<Gap>& gaps() const { return gaps_; }
  [[nodiscard]] const std::optional<std::uint64_t>& end() const { return end_; }
  [[nodiscard]] std::uint64_t evicted() const { return evicted_; }  // logical; 0 = nothing
  [[nodiscard]] WallTime evicted_at() const { return evicted_at_; }
  struct TimePoint {
    std::uint64_t offset = 0;
    WallTime at{};
  };
  [[nodiscard]] const TimePoint& last_time() const { return last_time_; }

 private:
  LogIndex(std::filesystem::path path, std::function<int(int)> sync_call)
      : path_(std::move(path)), sync_call_(std::move(sync_call)) {}
  Result<void> replay();
  Result<void> rewrite(std::uint64_t times_until);
  Result<void> need_fd();
  Result<void> append(const std::string& record);
  Result<void> sync();
  std::filesystem::path path_;
  std::function<int(int)> sync_call_;
  io::UniqueFd fd_;
  std::uint64_t bytes_ = 0;  // of sound records; what stands behind them is a dead writer's
  bool cut_due_ = false;     // a part of a record is behind them
  bool rewrite_due_ = false;
  std::vector<Gap> gaps_;
  std::optional<std::uint64_t> end_;
  std::uint64_t evicted_ = 0;
  WallTime evicted_at_{};
  TimePoint last_time_;
};

}  // namespace muster::logs
