// rank-N.index: what a log's bytes do not say themselves (proto/muster/logs/v1: IndexRecord). The mapping between logical offsets and those of the file,
// which holds the bytes without the gaps. Values and one append file; its owner (LogStore) locks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/io/frames.h"
#include "controller/logs/log_store.h"

namespace muster::logs {

class LogIndex {
 public:
  // Not there: empty, and not made before the first record. Damaged (power cut): set aside as *.damaged, and empty.
  static Result<LogIndex> load(std::filesystem::path path);

  Result<void> add_gap(Gap gap);
  Result<void> add_time(std::uint64_t offset, WallTime at);
  Result<void> add_end(std::uint64_t size);
  Result<void> add_evicted(std::uint64_t to, WallTime at);
  // The log holds only `size` bytes: what the index says of bytes beyond never happened (power cut).
  Result<void> forget_beyond(std::uint64_t size);
  // Closes the file; the next add opens it again.
  void close() { writer_.reset(); }

  [[nodiscard]] std::uint64_t logical(std::uint64_t physical) const;  // of the byte at `physical`; behind a gap that begins there
  [[nodiscard]] std::uint64_t physical(std::uint64_t logical) const;  // inside a gap: of the first byte behind it
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
  explicit LogIndex(std::filesystem::path path) : path_(std::move(path)) {}
  Result<bool> replay();
  Result<void> append(const std::string& record);
  std::filesystem::path path_;
  std::optional<io::FrameWriter> writer_;
  std::vector<Gap> gaps_;
  std::optional<std::uint64_t> end_;
  std::uint64_t evicted_ = 0;
  WallTime evicted_at_{};
  TimePoint last_time_;
};

}  // namespace muster::logs
