// RankLog: one log in the controller's store, of a rank or a process beside the ranks: a file of
// bytes and its index. Blocking; its owner (LogStore) locks.
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
  static Result<RankLog> open(std::filesystem::path log, std::filesystem::path index,
                              std::function<int(int)> sync_call = SyncCalls().file);

  [[nodiscard]] LogState state() const;
  // Answers the bytes that were written, 0 when all were there already.
  Result<std::uint64_t> append(std::uint64_t offset, std::string_view data,
                               const std::optional<Gap>& gap, WallTime now);
  Result<void> finish(std::uint64_t size);
  Result<Chunk> read(std::uint64_t offset, std::size_t most);
  // What tail_of (below) looks through, without the owner's lock; logical() turns its answer into
  // an offset.
  struct Extent {
    io::UniqueFd fd;
    std::uint64_t bottom = 0, top = 0;  // physical
  };
  Result<Extent> extent();
  [[nodiscard]] std::uint64_t logical(std::uint64_t physical) const {
    return index_.logical(physical);
  }
  // Where the line that holds the byte at `offset` begins, gaps and 64 KiB being as far as it looks
  // back; the log's end stays the end.
  Result<std::uint64_t> line_begin(std::uint64_t offset);
  [[nodiscard]] const std::filesystem::path& index_path() const { return index_.path(); }

  // Takes the oldest bytes, about `want` of them, all but the last `keep`; answers how many went.
  Result<std::uint64_t> evict(std::uint64_t want, std::uint64_t keep, WallTime now);
  [[nodiscard]] std::uint64_t stored_bytes() const {
    return size_ - std::min(size_, index_.physical(index_.evicted()));
  }

  // A sync goes without the owner's lock between these: sync_handle, sync the bytes of size() and
  // the folders; synced, which asks to sync index_handle as well when it has written the end mark;
  // end_synced. Handles are descriptors of their own.
  [[nodiscard]] bool sync_due() const { return synced_ < size_ || (ended_ && !state().durable); }
  Result<io::UniqueFd> sync_handle();
  Result<io::UniqueFd> index_handle() { return index_.sync_handle(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  Result<bool> synced(std::uint64_t size);
  void end_synced() { end_synced_ = true; }
  // The bytes' sync failed: those that were not synced before are taken off, and an end with them,
  // on a new descriptor. Until that has succeeded (an error here: to be tried again) the log is
  // unsound and takes nothing.
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
  // nothing is taken any more. The end mark follows when the bytes are synced,
  bool ended_ = false;
  bool end_synced_ = false;  // and then the mark itself
  bool unsound_ = false;
};

// Where in the file the last `lines` lines begin, looked for from the end; never further back than
// 64 KiB a line.
Result<std::uint64_t> tail_of(const RankLog::Extent& extent, std::uint64_t lines);

}  // namespace muster::logs
