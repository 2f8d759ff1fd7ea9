// LogStore over files (log_store.h has the folders): log_store.cc what comes and is read,
// log_room.cc what goes again and how much there is, log_sync.cc what a power loss leaves. One
// mutex; nothing that takes the disk's time is done under it but the writing itself, reads of at
// most a chunk, and making room. The series have a mutex of their own, under which a whole file may
// be read.
#pragma once

#include <algorithm>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/io/descriptor_limit.h"
#include "controller/logs/log_store.h"
#include "controller/logs/rank_log.h"
#include "controller/logs/series_file.h"

namespace muster::logs {

class FileLogStore final : public LogStore {
 public:
  FileLogStore(std::filesystem::path root, std::uint64_t quota, SyncCalls calls, RoomKept room)
      : root_(std::move(root)), quota_(quota), room_(room), calls_(std::move(calls)) {}
  // All once, before anything else.
  [[nodiscard]] Result<void> sync_names() const;
  void measure();         // what is there already
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
    bool named = false;  // its files' names are synced
  };
  [[nodiscard]] std::filesystem::path job_dir(const JobId& job) const { return root_ / job.str(); }
  Result<SeriesFile::Reading> series_now(const JobId& job);
  [[nodiscard]] std::filesystem::path base(const LogKey& key) const {
    return job_dir(key.job) / std::to_string(key.attempt.value) / file_stem(key);
  }
  using Logs = std::map<LogKey, StoredLog>;
  Result<StoredLog*> get(const LogKey& key);
  Logs::iterator let_go(Logs::iterator stored);
  // Of what is synced nothing is lost with it; the rest stays.
  void let_go_synced(const JobId& job);
  std::vector<LogKey> list_locked(const JobId& job) const;
  std::vector<JobId> jobs_locked() const;
  void keep_quota();
  std::optional<JobId> to_give_inodes();
  // Before that many bytes are written: the disk's share is kept, or they are not taken.
  Result<void> keep_free(const LogKey& key, std::uint64_t coming);
  // At least `want` bytes, if there are so many; answers what went.
  std::uint64_t take_finished(std::uint64_t want);
  std::uint64_t take_largest(std::uint64_t want);  // of one log
  [[nodiscard]] std::uint64_t evict_step() const;
  std::optional<LogKey> largest_unfinished();
  void keep_mark(const JobId& job) const;
  // Nothing: its job was removed meanwhile.
  Result<std::optional<LogState>> sync_one(const LogKey& key,
                                           std::set<std::filesystem::path>& folders,
                                           std::vector<LogKey>& set_back);
  Result<void> sync_file(const io::UniqueFd& fd, const std::string& path) const;
  Result<void> set_back_locked(const LogKey& key, RankLog& log, std::vector<LogKey>& set_back);
  Result<void> sync_folders(const LogKey& key, std::set<std::filesystem::path>& synced) const;
  void tell(const LogKey& key);

  const std::filesystem::path root_;
  const std::uint64_t quota_;
  const RoomKept room_;
  // logs with open descriptors, two each
  const std::size_t open_most_ = std::clamp<std::size_t>(io::descriptor_limit() / 8, 4, 256);
  const SyncCalls calls_;
  std::mutex mutex_;
  Logs logs_;                 // those in use; others are opened when asked for
  std::list<LogKey> recent_;  // with open descriptors, most recent first
  std::set<LogKey> dirty_;    // to be synced: these stay in logs_
  // Finished jobs, counted as they were marked; those that may have bytes to evict, in that order.
  std::unordered_map<JobId, std::uint64_t> finished_;
  std::map<std::uint64_t, JobId> evictable_;
  std::uint64_t marked_ = 0, removed_ = 0;
  std::uint64_t used_ = 0;
  bool starved_ = false;  // what unfinished jobs' logs gave up was not enough for the disk

  std::mutex series_mutex_;  // before mutex_, where both are held
  std::map<JobId, SeriesFile> series_;

  std::mutex callback_mutex_;
  std::shared_ptr<const std::function<void(const LogKey&)>> callback_;
};

}  // namespace muster::logs
