// The LogStore over files (see the directories in log_store.h). LogStore::open() makes it for the
// caller. It is thread-safe: one mutex guards the logs, and another one guards the series.
//
// log_store.cc has writes and reads; log_room.cc has removal and the use of space; log_sync.cc has
// what survives a power loss.
//
// Under the logs' mutex, the disk is used only for writing itself, for reads of at most one chunk,
// and for making room. Under the series' mutex, a whole file may be read.
#pragma once

#include <algorithm>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/mutex.h"
#include "common/io/descriptor_limit.h"
#include "controller/logs/log_store.h"
#include "controller/logs/rank_log.h"
#include "controller/logs/series_file.h"

namespace muster::logs {

class FileLogStore final : public LogStore {
 public:
  FileLogStore(std::filesystem::path root, std::uint64_t quota, SyncCalls calls, RoomKept room)
      : root_(std::move(root)), quota_(quota), room_(room), calls_(std::move(calls)) {}
  // Each of the next three is called once, before anything else.
  [[nodiscard]] Result<void> sync_names() const;
  void measure();         // counts what already exists
  void room_for_start();  // before anybody else writes

  Result<LogState> state(const LogKey& key) override;
  Result<LogState> append(const LogKey& key, std::uint64_t offset, std::string_view data,
                          const std::optional<Gap>& gap) override;
  Result<LogState> finish(const LogKey& key, std::uint64_t size) override;
  Result<Chunk> read(const LogKey& key, std::uint64_t offset, std::size_t most) override;
  Result<std::uint64_t> tail(const LogKey& key, std::uint64_t lines) override;
  Result<std::uint64_t> since(const LogKey& key, WallTime time) override;
  std::vector<LogKey> list(const JobId& job) override;
  void on_change(std::function<void(const LogKey&)> callback) override;
  Result<void> add_points(const JobId& job, const std::vector<SeriesPoint>& points) override;
  Result<std::vector<SeriesPoint>> series(const JobId& job) override;
  Result<std::optional<SeriesPoint>> last_point(const JobId& job) override;
  std::vector<JobId> jobs() override;
  WallTime written_at(const JobId& job) override;
  Result<void> remove(const JobId& job) override;
  void mark_finished(const JobId& job) override;
  void unmark_finished(const JobId& job) override;
  void make_room() override;
  Synced sync() override;

 private:
  struct StoredLog {
    explicit StoredLog(RankLog log) : log(std::move(log)) {}
    RankLog log;
    std::list<LogKey>::iterator recent;
    bool open = false;
    bool named = false;  // the names of its files are synced
  };
  [[nodiscard]] std::filesystem::path job_dir(const JobId& job) const { return root_ / job.str(); }
  Result<SeriesFile::Reading> series_now(const JobId& job);
  [[nodiscard]] std::filesystem::path base(const LogKey& key) const {
    return job_dir(key.job) / std::to_string(key.attempt.value) / file_stem(key);
  }
  using Logs = std::map<LogKey, StoredLog>;
  Result<StoredLog*> get(const LogKey& key) MUSTER_REQUIRES(mutex_);
  Logs::iterator let_go(Logs::iterator stored) MUSTER_REQUIRES(mutex_);
  // Releases the synced logs of the job from memory, which loses nothing; the others stay.
  void let_go_synced(const JobId& job) MUSTER_REQUIRES(mutex_);
  std::vector<LogKey> list_locked(const JobId& job) const MUSTER_REQUIRES(mutex_);
  std::vector<JobId> jobs_locked() const MUSTER_REQUIRES(mutex_);
  void keep_quota() MUSTER_REQUIRES(mutex_);
  std::optional<JobId> to_give_inodes();
  // Call this before `coming` bytes are written. Keeps the disk's share free; if it cannot, the
  // bytes are not accepted.
  Result<void> keep_free(const LogKey& key, std::uint64_t coming) MUSTER_REQUIRES(mutex_);
  // Removes at least `want` bytes, if there are so many. Returns how many bytes were removed.
  std::uint64_t take_finished(std::uint64_t want) MUSTER_REQUIRES(mutex_);
  std::uint64_t take_largest(std::uint64_t want) MUSTER_REQUIRES(mutex_);  // from one log
  [[nodiscard]] std::uint64_t evict_step() const;
  std::optional<LogKey> largest_unfinished() MUSTER_REQUIRES(mutex_);
  void keep_mark(const JobId& job) const MUSTER_REQUIRES(mutex_);
  // Nothing: its job was removed in the meantime.
  Result<std::optional<LogState>> sync_one(const LogKey& key,
                                           std::set<std::filesystem::path>& folders,
                                           std::vector<LogKey>& set_back);
  Result<void> sync_file(const io::UniqueFd& fd, const std::string& path) const;
  Result<void> set_back_locked(const LogKey& key, RankLog& log, std::vector<LogKey>& set_back)
      MUSTER_REQUIRES(mutex_);
  // The log is synced as far as it was when the sync began.
  LogState synced_locked(const LogKey& key, const RankLog& log) MUSTER_REQUIRES(mutex_);
  Result<void> sync_folders(const LogKey& key, std::set<std::filesystem::path>& synced) const;
  void tell(const LogKey& key);

  const std::filesystem::path root_;
  const std::uint64_t quota_;
  const RoomKept room_;
  // How many logs may have open descriptors, two each.
  const std::size_t open_most_ = std::clamp<std::size_t>(io::descriptor_limit() / 8, 4, 256);
  const SyncCalls calls_;
  Mutex mutex_;
  Logs logs_ MUSTER_GUARDED_BY(mutex_);                 // logs in use; others are opened on demand
  std::list<LogKey> recent_ MUSTER_GUARDED_BY(mutex_);  // with open descriptors, most recent first
  std::set<LogKey> dirty_ MUSTER_GUARDED_BY(mutex_);    // to be synced; these stay in logs_
  // Finished jobs, numbered in the order in which they were marked; and those of them that may have
  // bytes to evict, in that order.
  std::unordered_map<JobId, std::uint64_t> finished_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::uint64_t, JobId> evictable_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t marked_ MUSTER_GUARDED_BY(mutex_) = 0, removed_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t used_ MUSTER_GUARDED_BY(mutex_) = 0;
  // The logs of unfinished jobs could not free enough of the disk.
  bool starved_ MUSTER_GUARDED_BY(mutex_) = false;

  Mutex series_mutex_ MUSTER_ACQUIRED_BEFORE(mutex_);
  std::map<JobId, SeriesFile> series_ MUSTER_GUARDED_BY(series_mutex_);

  Mutex callback_mutex_;
  std::shared_ptr<const std::function<void(const LogKey&)>> callback_
      MUSTER_GUARDED_BY(callback_mutex_);
};

}  // namespace muster::logs
