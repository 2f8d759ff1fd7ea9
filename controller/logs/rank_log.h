// One log in the controller's store, of a rank or of an auxiliary process: a file of bytes and its
// index. FileLogStore owns it. It blocks on file I/O and is not thread-safe; the FileLogStore locks
// around it.
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
  // `log` and `index` need not exist: the first append makes them and their directory.
  static Result<RankLog> open(std::filesystem::path log, std::filesystem::path index,
                              std::function<int(int)> sync_call = SyncCalls().file);

  [[nodiscard]] LogState state() const;
  // Returns how many bytes were written; 0 if all were already stored.
  Result<std::uint64_t> append(std::uint64_t offset, std::string_view data,
                               const std::optional<Gap>& gap, WallTime now);
  Result<void> finish(std::uint64_t size);
  Result<Chunk> read(std::uint64_t offset, std::size_t most);
  // The part of the file that tail_of() (below) searches without the owner's lock. logical()
  // converts its result to a logical offset.
  struct Extent {
    io::UniqueFd fd;
    std::uint64_t bottom = 0, top = 0;  // physical
  };
  Result<Extent> extent();
  [[nodiscard]] std::uint64_t logical(std::uint64_t physical) const {
    return index_.logical(physical);
  }
  // The begin of the line that contains the byte at `offset`. It searches back to a gap, or at most
  // 64 KiB. The end of the log stays the end.
  Result<std::uint64_t> line_begin(std::uint64_t offset);
  [[nodiscard]] const std::filesystem::path& index_path() const { return index_.path(); }

  // Removes about `want` of the oldest bytes, but never the last `keep`. Returns how many bytes
  // were removed.
  Result<std::uint64_t> evict(std::uint64_t want, std::uint64_t keep, WallTime now);
  [[nodiscard]] std::uint64_t stored_bytes() const {
    return size_ - std::min(size_, index_.physical(index_.evicted()));
  }

  // A sync runs without the owner's lock between these calls:
  // 1. sync_handle(); sync the bytes up to size(), and the directories;
  // 2. synced(); if it has written the end mark, it asks to sync index_handle() as well;
  // 3. end_synced().
  //
  // Handles are descriptors of their own.
  [[nodiscard]] bool sync_due() const { return synced_ < size_ || (ended_ && !state().durable); }
  Result<io::UniqueFd> sync_handle();
  Result<io::UniqueFd> index_handle() { return index_.sync_handle(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  Result<bool> synced(std::uint64_t size);
  void end_synced() { end_synced_ = true; }
  // Call this when the sync of the bytes failed. On a new descriptor, it removes the bytes that
  // were not synced before, and the end with them. Until this has succeeded (an error: try again),
  // the log is unsound and accepts nothing.
  Result<void> set_back();
  [[nodiscard]] bool unsound() const { return unsound_; }
  void index_sync_failed() { index_.sync_failed(); }

  void close();  // frees the descriptors; the next call opens them again

 private:
  RankLog(std::filesystem::path log, LogIndex index, std::function<int(int)> sync_call)
      : log_(std::move(log)), index_(std::move(index)), sync_call_(std::move(sync_call)) {}
  Result<void> need_fd(bool make);
  Result<std::string> pread_all(std::uint64_t at, std::size_t most) const;

  std::filesystem::path log_;
  LogIndex index_;
  std::function<int(int)> sync_call_;
  io::UniqueFd fd_;
  std::uint64_t size_ = 0;    // physical
  std::uint64_t synced_ = 0;  // physical
  // Nothing is accepted any more. The end mark follows when the bytes are synced.
  bool ended_ = false;
  bool end_synced_ = false;  // the end mark is synced, too
  bool unsound_ = false;
};

// Where in the file the last `lines` lines begin. It searches from the end, at most 64 KiB for each
// line.
Result<std::uint64_t> tail_of(const RankLog::Extent& extent, std::uint64_t lines);

}  // namespace muster::logs
