// RankLog: one rank's log in the controller's store: a file of bytes and its index. Blocking; its owner (LogStore) locks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "controller/logs/log_index.h"

namespace muster::logs {

inline constexpr const char* kQuotaReason = "the log quota of the controller";

class RankLog {
 public:
  // `log` and `index` need not be there: they and their folder are made by the first append.
  static Result<RankLog> open(std::filesystem::path log, std::filesystem::path index);

  [[nodiscard]] LogState state() const;
  // Answers the bytes that were written, 0 when all were there already.
  Result<std::uint64_t> append(std::uint64_t offset, std::string_view data, const std::optional<Gap>& gap, WallTime now);
  Result<void> finish(std::uint64_t size);
  Result<Chunk> read(std::uint64_t offset, std::size_t most);
  Result<std::uint64_t> tail(std::uint64_t lines);

  // Takes the oldest bytes, about `want` of them, all but the last `keep`; answers how many went.
  Result<std::uint64_t> evict(std::uint64_t want, std::uint64_t keep, WallTime now);
  [[nodiscard]] std::uint64_t held_bytes() const { return size_ - std::min(size_, index_.physical(index_.evicted())); }

  // For a sync without the owner's lock: a descriptor of its own, and what is synced when that succeeds.
  [[nodiscard]] bool sync_due() const { return synced_ < size_; }
  Result<io::UniqueFd> sync_handle();
  [[nodiscard]] std::uint64_t size() const { return size_; }
  void synced(std::uint64_t size) { synced_ = std::max(synced_, size); }

  void close();  // frees the descriptors; the next call opens them again

 private:
  RankLog(std::filesystem::path log, LogIndex index) : log_(std::move(log)), index_(std::move(index)) {}
  Result<void> need_fd(bool make);
  Result<std::string> pread_all(std::uint64_t at, std::size_t most) const;

  std::filesystem::path log_;
  LogIndex index_;
  io::UniqueFd fd_;
  std::uint64_t size_ = 0;    // physical
  std::uint64_t synced_ = 0;  // physical
};

}  // namespace muster::logs
