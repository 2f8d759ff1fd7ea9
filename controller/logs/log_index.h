// The file rank-N.index: what the bytes of a log do not contain themselves (proto/muster/logs/v1:
// IndexRecord). RankLog owns it. It is not thread-safe; the LogStore locks around it.
//
// The index maps logical offsets to offsets in the file, which has the bytes without the gaps. It
// consists of values in memory, and one file that is appended to.
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

// A time point is valid for the bytes that arrived within this time after it; later bytes get a
// point of their own. It is long enough to keep the index of a growing log small: 230 KB a day.
inline constexpr Duration kTimeStep = std::chrono::seconds(10);

class LogIndex {
 public:
  // If the file does not exist, the index is empty, and the first record makes the file. If the
  // file is damaged (power cut), a copy is kept as *.damaged, and the index ends before the first
  // record that is not sound. The records before it remain valid: without their gaps, every byte
  // after them would move.
  static Result<LogIndex> load(std::filesystem::path path,
                               std::function<int(int)> sync_call = SyncCalls().file);

  Result<void> add_gap(Gap gap);
  Result<void> add_time(std::uint64_t offset, WallTime at);
  Result<void> add_end(std::uint64_t size);
  Result<void> add_evicted(std::uint64_t to, WallTime at);

  // For the index file `path` of a log with `end` bytes: returns the logical offset from which
  // bytes may have arrived at `time` or later; everything before it arrived earlier. Reads only the
  // file, so that no writer has to wait. Returns 0 if there is no time point (a lost index).
  static Result<std::uint64_t> since(const std::filesystem::path& path, WallTime time,
                                     std::uint64_t end);

  // The log has only `size` bytes: removes from the index what it says about later bytes, which do
  // not exist (power cut).
  Result<void> forget_beyond(std::uint64_t size);
  // Closes the file. The next add opens it again without reading it, because the length of the file
  // is known.
  void close() { fd_.reset(); }
  // Returns a descriptor of its own, for a sync without the owner's lock. Makes the file if it is
  // missing.
  Result<io::UniqueFd> sync_handle();
  // Call this when a sync of such a descriptor failed: then nobody knows what part of the file is
  // on the disk. The file is rewritten before it is used again.
  void sync_failed() { rewrite_due_ = true; }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // The logical offset of the byte at `physical`; if a gap begins there, the offset after the gap.
  [[nodiscard]] std::uint64_t logical(std::uint64_t physical) const;
  // The physical offset; for an offset inside a gap, that of the first byte after the gap.
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
  std::uint64_t bytes_ = 0;  // of sound records; bytes after them were left by a writer that died
  bool cut_due_ = false;     // a part of a record is after them
  bool rewrite_due_ = false;
  std::vector<Gap> gaps_;
  std::optional<std::uint64_t> end_;
  std::uint64_t evicted_ = 0;
  WallTime evicted_at_{};
  TimePoint last_time_;
};

}  // namespace muster::logs
