#include "controller/logs/log_store.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <system_error>

#include "common/io/file.h"
#include "controller/logs/rank_log.h"
#include "controller/logs/series_file.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kOpenMost = 256;           // logs with open descriptors
constexpr std::uint64_t kKeepNewest = 64 << 10;  // of a running job's log, whatever the quota says
constexpr std::uint64_t kEvictStep = 16 << 20;

template <class Int>
std::optional<Int> number(std::string_view text) {
  Int value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<RankNo> rank_of(const std::string& name) {
  if (!name.starts_with("rank-") || !name.ends_with(".log")) return std::nullopt;
  const auto rank = number<std::uint32_t>(std::string_view(name).substr(5, name.size() - 9));
  return rank ? std::optional(RankNo(*rank)) : std::nullopt;
}

class FileLogStore final : public LogStore {
 public:
  FileLogStore(fs::path root, std::uint64_t quota) : root_(std::move(root)), quota_(quota) {}
  void measure();

  Result<LogState> state(const LogKey& key) override;
  Result<LogState> append(const LogKey& key, std::uint64_t offset, std::string_view data, const std::optional<Gap>& gap) override;
  Result<LogState> finish(const LogKey& key, std::uint64_t size) override;
  Result<Chunk> read(const LogKey& key, std::uint64_t offset, std::size_t most) override;
  Result<std::uint64_t> tail(const LogKey& key, std::uint64_t lines) override;
  std::vector<LogKey> list(const JobId& job) override;
  void on_change(std::function<void(const LogKey&)> callback) override;
  Result<void> add_points(const JobId& job, const std::vector<SeriesPoint>& points) override;
  Result<std::vector<SeriesPoint>> series(const JobId& job) override;
  Result<void> remove(const JobId& job) override;
  void mark_finished(const JobId& job) override;
  Result<std::vector<LogKey>> sync() override;

 private:
  struct Held {
    explicit Held(RankLog log) : log(std::move(log)) {}
    RankLog log;
    std::list<LogKey>::iterator recent;
    bool open = false;
  };
  [[nodiscard]] fs::path job_dir(const JobId& job) const { return root_ / job.str(); }
  [[nodiscard]] fs::path base(const LogKey& key) const {
    return job_dir(key.job) / std::to_string(key.attempt.value) / ("rank-" + std::to_string(key.rank.value));
  }
  Result<Held*> get(const LogKey& key);
  void drop(const JobId& job);
  std::vector<LogKey> list_locked(const JobId& job) const;
  void make_room();
  void tell(const LogKey& key);

  const fs::path root_;
  const std::uint64_t quota_;
  std::mutex mutex_;
  std::map<LogKey, Held> logs_;  // those in use; others are opened when asked for
  std::list<LogKey> recent_;     // with open descriptors, most recent first
  std::set<LogKey> dirty_;
  std::map<JobId, SeriesFile> series_;
  std::vector<JobId> finished_;  // not evicted yet, oldest first
  std::uint64_t used_ = 0;

  std::mutex callback_mutex_;
  std::shared_ptr<const std::function<void(const LogKey&)>> callback_;
};

void FileLogStore::measure() {
  std::error_code error;
  for (fs::recursive_directory_iterator at(root_, fs::directory_options::skip_permission_denied, error), end; !error && at != end; at.increment(error)) {
    struct stat now{};
    if (at->path().extension() == ".log" && ::stat(at->path().c_str(), &now) == 0) used_ += static_cast<std::uint64_t>(now.st_blocks) * 512;
  }
}

Result<FileLogStore::Held*> FileLogStore::get(const LogKey& key) {
  auto found = logs_.find(key);
  if (found == logs_.end()) {
    const fs::path stem = base(key);
    auto log = RankLog::open(stem.string() + ".log", stem.string() + ".index");
    if (!log) return fail(std::move(log.error()));
    found = logs_.emplace(key, Held(std::move(*log))).first;
  }
  Held& held = found->second;
  if (held.open) recent_.erase(held.recent);
  recent_.push_front(key);
  held.recent = recent_.begin();
  held.open = true;
  if (recent_.size() > kOpenMost) {
    Held& oldest = logs_.at(recent_.back());
    oldest.log.close();
    oldest.open = false;
    recent_.pop_back();
  }
  return &held;
}

void FileLogStore::drop(const JobId& job) {
  for (auto at = logs_.lower_bound({job, AttemptNo(0), RankNo(0)}); at != logs_.end() && at->first.job == job;) {
    if (at->second.open) recent_.erase(at->second.recent);
    dirty_.erase(at->first);
    at = logs_.erase(at);
  }
  series_.erase(job);
}

void FileLogStore::tell(const LogKey& key) {
  std::shared_ptr<const std::function<void(const LogKey&)>> callback;
  {
    const std::scoped_lock lock(callback_mutex_);
    callback = callback_;
  }
  if (callback && *callback) (*callback)(key);
}

Result<LogState> FileLogStore::state(const LogKey& key) {
  const std::scoped_lock lock(mutex_);
  auto held = get(key);
  if (!held) return fail(std::move(held.error()));
  // Opened again after a restart: nobody knows any more what of it was synced.
  if ((*held)->log.sync_due()) dirty_.insert(key);
  return (*held)->log.state();
}

Result<LogState> FileLogStore::append(const LogKey& key, std::uint64_t offset, std::string_view data, const std::optional<Gap>& gap) {
  LogState state;
  {
    const std::scoped_lock lock(mutex_);
    auto held = get(key);
    if (!held) return fail(std::move(held.error()));
    const std::uint64_t before = (*held)->log.size();
    auto written = (*held)->log.append(offset, data, gap, system_clock().now().wall);
    // A failed append may have written a part.
    const std::uint64_t grown = (*held)->log.size() - before;
    used_ += grown;
    if (grown > 0) dirty_.insert(key);
    if (!written) return fail(std::move(written.error()));
    state = (*held)->log.state();
    if (used_ > quota_) make_room();  // may take this very log: `held` ends here
  }
  tell(key);
  return state;
}

Result<LogState> FileLogStore::finish(const LogKey& key, std::uint64_t size) {
  LogState state;
  {
    const std::scoped_lock lock(mutex_);
    auto held = get(key);
    if (!held) return fail(std::move(held.error()));
    if (auto done = (*held)->log.finish(size); !done) return fail(std::move(done.error()));
    state = (*held)->log.state();
  }
  tell(key);
  return state;
}

Result<Chunk> FileLogStore::read(const LogKey& key, std::uint64_t offset, std::size_t most) {
  const std::scoped_lock lock(mutex_);
  auto held = get(key);
  if (!held) return fail(std::move(held.error()));
  return (*held)->log.read(offset, most);
}

Result<std::uint64_t> FileLogStore::tail(const LogKey& key, std::uint64_t lines) {
  const std::scoped_lock lock(mutex_);
  auto held = get(key);
  if (!held) return fail(std::move(held.error()));
  return (*held)->log.tail(lines);
}

std::vector<LogKey> FileLogStore::list_locked(const JobId& job) const {
  std::vector<LogKey> keys;
  std::error_code error;
  for (fs::directory_iterator attempts(job_dir(job), error), end; !error && attempts != end; attempts.increment(error)) {
    const auto attempt = number<std::uint32_t>(attempts->path().filename().string());
    if (!attempt) continue;
    std::error_code inner;
    for (fs::directory_iterator files(attempts->path(), inner); !inner && files != end; files.increment(inner)) {
      if (const auto rank = rank_of(files->path().filename().string())) keys.push_back({job, AttemptNo(*attempt), *rank});
    }
  }
  std::ranges::sort(keys);
  return keys;
}

std::vector<LogKey> FileLogStore::list(const JobId& job) {
  const std::scoped_lock lock(mutex_);
  return list_locked(job);
}

void FileLogStore::on_change(std::function<void(const LogKey&)> callback) {
  const std::scoped_lock lock(callback_mutex_);
  callback_ = std::make_shared<const std::function<void(const LogKey&)>>(std::move(callback));
}

// Errors leave the log as it is: the disk itself then says when it is full.
void FileLogStore::make_room() {
  const WallTime now = system_clock().now().wall;
  while (used_ > quota_ && !finished_.empty()) {
    const JobId job = finished_.front();
    finished_.erase(finished_.begin());
    for (const LogKey& key : list_locked(job)) {
      auto held = get(key);
      if (!held) continue;
      if (const auto went = (*held)->log.evict(UINT64_MAX / 2, 0, now)) used_ -= std::min(used_, *went);
    }
    drop(job);
  }
  while (used_ > quota_) {
    const auto largest = std::ranges::max_element(logs_, {}, [](const auto& entry) { return entry.second.log.held_bytes(); });
    if (largest == logs_.end()) return;
    auto held = get(largest->first);
    if (!held) return;
    const auto went = (*held)->log.evict(std::max<std::uint64_t>(used_ - quota_, std::min<std::uint64_t>(kEvictStep, quota_ / 16)), kKeepNewest, now);
    if (!went || *went == 0) return;
    used_ -= std::min(used_, *went);
  }
}

Result<void> FileLogStore::add_points(const JobId& job, const std::vector<SeriesPoint>& points) {
  const std::scoped_lock lock(mutex_);
  auto found = series_.find(job);
  if (found == series_.end()) {
    if (auto done = io::make_dirs(job_dir(job), 0700); !done) return done;
    auto file = SeriesFile::open(job_dir(job) / "series");
    if (!file) return fail(std::move(file.error()));
    found = series_.emplace(job, std::move(*file)).first;
  }
  return found->second.add(points);
}

Result<std::vector<SeriesPoint>> FileLogStore::series(const JobId& job) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = series_.find(job); found != series_.end()) return found->second.read();
  auto file = SeriesFile::open(job_dir(job) / "series");
  if (!file) return fail(std::move(file.error()));
  return file->read();
}

Result<void> FileLogStore::remove(const JobId& job) {
  const std::scoped_lock lock(mutex_);
  drop(job);
  std::erase(finished_, job);
  for (const LogKey& key : list_locked(job)) {
    struct stat now{};
    if (::stat((base(key).string() + ".log").c_str(), &now) == 0) used_ -= std::min(used_, static_cast<std::uint64_t>(now.st_blocks) * 512);
  }
  std::error_code error;
  fs::remove_all(job_dir(job), error);
  if (error) return fail_errno(fmt::format("removing the logs of job '{}'", job.str()), error.value());
  return {};
}

void FileLogStore::mark_finished(const JobId& job) {
  const std::scoped_lock lock(mutex_);
  if (std::ranges::find(finished_, job) == finished_.end()) finished_.push_back(job);
  series_.erase(job);
}

Result<std::vector<LogKey>> FileLogStore::sync() {
  struct Due {
    LogKey key;
    io::UniqueFd fd;
    std::uint64_t size;
  };
  std::vector<Due> due;
  {
    const std::scoped_lock lock(mutex_);
    for (const LogKey& key : std::exchange(dirty_, {})) {
      auto held = get(key);
      if (!held) return fail(std::move(held.error()));
      auto fd = (*held)->log.sync_handle();
      if (!fd) return fail(std::move(fd.error()));
      due.push_back({key, std::move(*fd), (*held)->log.size()});
    }
  }
  std::vector<LogKey> done;
  for (Due& one : due) {
    const int error = ::fdatasync(one.fd.get()) == 0 ? 0 : errno;
    const std::scoped_lock lock(mutex_);
    if (error != 0) {
      dirty_.insert(one.key);
      return fail_errno(fmt::format("syncing log '{}.log'", base(one.key).string()), error);
    }
    const auto found = logs_.find(one.key);
    if (found == logs_.end()) continue;
    found->second.log.synced(one.size);
    done.push_back(one.key);
  }
  return done;
}

}  // namespace

Result<std::unique_ptr<LogStore>> LogStore::open(fs::path root, std::uint64_t quota) {
  if (auto done = io::make_dirs(root, 0700); !done) return fail(std::move(done.error()).in("opening the log store"));
  auto store = std::make_unique<FileLogStore>(std::move(root), quota);
  store->measure();
  return store;
}

}  // namespace muster::logs
