#include "controller/logs/log_store.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "common/io/file.h"
#include "controller/logs/file_log_store.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

}  // namespace

bool is_auxiliary(std::string_view name, std::string_view node) {
  if (name.empty() || name.size() > 64 || node.empty() || node.size() > 63 || node.front() == '.')
    return false;
  return std::ranges::all_of(name, is_name_character) &&
         std::ranges::all_of(node, [](char c) { return is_name_character(c) || c == '.'; });
}

std::string file_stem(const LogKey& key) {
  return key.auxiliary.empty() ? fmt::format("rank-{}", key.rank.value)
                               : fmt::format("{}@{}", key.auxiliary, key.node.str());
}

std::optional<LogKey> key_of_stem(const JobId& job, AttemptNo attempt, std::string_view stem) {
  if (const std::size_t at = stem.find('@'); at != std::string_view::npos) {
    const std::string_view name = stem.substr(0, at), node = stem.substr(at + 1);
    if (!is_auxiliary(name, node)) return std::nullopt;
    return LogKey{job, attempt, RankNo(0), std::string(name), NodeName(std::string(node))};
  }
  if (!stem.starts_with("rank-")) return std::nullopt;
  const auto rank = number(stem.substr(5));
  return rank ? std::optional(LogKey{job, attempt, RankNo(*rank)}) : std::nullopt;
}

Result<FileLogStore::StoredLog*> FileLogStore::get(const LogKey& key) {
  auto found = logs_.find(key);
  if (found == logs_.end()) {
    const fs::path stem = base(key);
    auto log = RankLog::open(stem.string() + ".log", stem.string() + ".index", calls_.file);
    if (!log) return fail(std::move(log.error()));
    found = logs_.emplace(key, StoredLog(std::move(*log))).first;
  }
  StoredLog& stored = found->second;
  if (stored.open) recent_.erase(stored.recent);
  recent_.push_front(key);
  stored.recent = recent_.begin();
  stored.open = true;
  if (recent_.size() > open_most_) {
    const auto oldest = logs_.find(recent_.back());
    const LogState state = oldest->second.log.state();
    // A log that still grows stays in memory: opening it again would read its whole index.
    const bool grows = !state.complete && state.end > 0 && !finished_.contains(oldest->first.job);
    if (grows || dirty_.contains(oldest->first)) {
      oldest->second.log.close();
      oldest->second.open = false;
      recent_.pop_back();
    } else {
      let_go(oldest);
    }
  }
  return &stored;
}

FileLogStore::Logs::iterator FileLogStore::let_go(Logs::iterator stored) {
  if (stored->second.open) recent_.erase(stored->second.recent);
  return logs_.erase(stored);
}

void FileLogStore::tell(const LogKey& key) {
  std::shared_ptr<const std::function<void(const LogKey&)>> callback;
  {
    const MutexLock lock(callback_mutex_);
    callback = callback_;
  }
  if (callback && *callback) (*callback)(key);
}

Result<LogState> FileLogStore::state(const LogKey& key) {
  const MutexLock lock(mutex_);
  auto stored = get(key);
  if (!stored) return fail(std::move(stored.error()));
  // If the log was opened again after a restart, nobody knows what part of it was synced.
  if ((*stored)->log.sync_due()) dirty_.insert(key);
  return (*stored)->log.state();
}

Result<LogState> FileLogStore::append(const LogKey& key, std::uint64_t offset,
                                      std::string_view data, const std::optional<Gap>& gap) {
  LogState state;
  {
    const MutexLock lock(mutex_);
    if (auto kept = keep_free(key, data.size()); !kept) return fail(std::move(kept.error()));
    auto stored = get(key);
    if (!stored) return fail(std::move(stored.error()));
    const std::uint64_t before = (*stored)->log.size();
    auto written = (*stored)->log.append(offset, data, gap, system_clock().now().wall);
    // A failed append may have written a part.
    const std::uint64_t grown = (*stored)->log.size() - before;
    used_ += grown;
    if (grown > 0) {
      dirty_.insert(key);
      if (const auto late = finished_.find(key.job); late != finished_.end()) {
        evictable_.emplace(late->second, key.job);
        if (before == 0) keep_mark(key.job);  // its directory may be new
      }
    }
    if (!written) return fail(std::move(written.error()));
    state = (*stored)->log.state();
    if (used_ > quota_) keep_quota();  // may release this very log: do not use `stored` after this
  }
  tell(key);
  return state;
}

Result<LogState> FileLogStore::finish(const LogKey& key, std::uint64_t size) {
  LogState state;
  {
    const MutexLock lock(mutex_);
    auto stored = get(key);
    if (!stored) return fail(std::move(stored.error()));
    if (auto done = (*stored)->log.finish(size); !done) return fail(std::move(done.error()));
    if ((*stored)->log.sync_due()) dirty_.insert(key);
    state = (*stored)->log.state();
  }
  tell(key);
  return state;
}

Result<Chunk> FileLogStore::read(const LogKey& key, std::uint64_t offset, std::size_t most) {
  const MutexLock lock(mutex_);
  auto stored = get(key);
  if (!stored) return fail(std::move(stored.error()));
  return (*stored)->log.read(offset, most);
}

Result<std::uint64_t> FileLogStore::tail(const LogKey& key, std::uint64_t lines) {
  RankLog::Extent extent;
  {
    const MutexLock lock(mutex_);
    auto stored = get(key);
    if (!stored) return fail(std::move(stored.error()));
    auto there = (*stored)->log.extent();
    if (!there) return fail(std::move(there.error()));
    extent = std::move(*there);
  }
  // Many lines take long, so no append waits for them.
  auto from = tail_of(extent, lines);
  if (!from)
    return fail(
        std::move(from.error()).in(fmt::format("reading log '{}.log'", base(key).string())));
  const MutexLock lock(mutex_);
  auto stored = get(key);
  if (!stored) return fail(std::move(stored.error()));
  return (*stored)->log.logical(*from);
}

Result<std::uint64_t> FileLogStore::since(const LogKey& key, WallTime time) {
  fs::path index;
  std::uint64_t end = 0;
  {
    const MutexLock lock(mutex_);
    auto stored = get(key);
    if (!stored) return fail(std::move(stored.error()));
    index = (*stored)->log.index_path();
    end = (*stored)->log.state().end;
  }
  // The index of a long log takes long to read, so no append waits for it.
  const auto from = LogIndex::since(index, time, end);
  if (!from) return from;
  const MutexLock lock(mutex_);
  auto stored = get(key);
  if (!stored) return fail(std::move(stored.error()));
  return (*stored)->log.line_begin(*from);
}

std::vector<LogKey> FileLogStore::list_locked(const JobId& job) const {
  std::vector<LogKey> keys;
  std::error_code error;
  for (fs::directory_iterator attempts(job_dir(job), error), end; !error && attempts != end;
       attempts.increment(error)) {
    const auto attempt = number(attempts->path().filename().string());
    if (!attempt) continue;
    std::error_code inner;
    for (fs::directory_iterator files(attempts->path(), inner); !inner && files != end;
         files.increment(inner)) {
      if (files->path().extension() != ".log") continue;
      if (auto key = key_of_stem(job, AttemptNo(*attempt), files->path().stem().string()))
        keys.push_back(std::move(*key));
    }
  }
  std::ranges::sort(keys);
  return keys;
}

std::vector<LogKey> FileLogStore::list(const JobId& job) {
  const MutexLock lock(mutex_);
  return list_locked(job);
}

void FileLogStore::on_change(std::function<void(const LogKey&)> callback) {
  const MutexLock lock(callback_mutex_);
  callback_ = std::make_shared<const std::function<void(const LogKey&)>>(std::move(callback));
}

// Uses a mutex of its own: opening and thinning read the whole file, and no append waits for that.
Result<void> FileLogStore::add_points(const JobId& job, const std::vector<SeriesPoint>& points) {
  const MutexLock lock(series_mutex_);
  if (const auto found = series_.find(job); found != series_.end())
    return found->second.add(points);
  if (auto done = io::make_dirs(job_dir(job), 0700); !done) return done;
  auto file = SeriesFile::open(job_dir(job) / "series");
  if (!file) return fail(std::move(file.error()));
  // The last heartbeats arrive when the job has ended. Nobody would ever close a file that stays
  // open for them.
  const bool finished = [&] {
    const MutexLock logs(mutex_);
    return finished_.contains(job);
  }();
  if (finished) return file->add(points);
  return series_.emplace(job, std::move(*file)).first->second.add(points);
}

Result<std::vector<SeriesPoint>> FileLogStore::series(const JobId& job) {
  auto reading = series_now(job);
  if (!reading) return fail(std::move(reading.error()));
  return reading->points(kSeriesPointsMost);
}

Result<std::optional<SeriesPoint>> FileLogStore::last_point(const JobId& job) {
  auto reading = series_now(job);
  if (!reading) return fail(std::move(reading.error()));
  return reading->last();
}

Result<SeriesFile::Reading> FileLogStore::series_now(const JobId& job) {
  const MutexLock lock(series_mutex_);
  return SeriesFile::Reading::of(job_dir(job) / "series");
}

// Syncs the name of the store's directory, and the name of the directory that contains it. If this
// user may not read a directory, it cannot be synced.
Result<void> FileLogStore::sync_names() const {
  fs::path folder = root_;
  for (int i = 0; i < 2 && folder.has_parent_path(); ++i) {
    folder = folder.parent_path();
    const io::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd && errno == EACCES) continue;
    if (!fd || calls_.folder(fd.get()) != 0)
      return fail_errno(fmt::format("syncing folder '{}'", folder.string()), errno);
  }
  return {};
}

Result<std::unique_ptr<LogStore>> LogStore::open(fs::path root, std::uint64_t quota,
                                                 SyncCalls calls, RoomKept room) {
  if (auto done = io::make_dirs(root, 0700); !done)
    return fail(std::move(done.error()).in("opening the log store"));
  auto store = std::make_unique<FileLogStore>(std::move(root), quota, std::move(calls), room);
  if (auto done = store->sync_names(); !done)
    return fail(std::move(done.error()).in("opening the log store"));
  store->measure();
  store->room_for_start();
  return store;
}

}  // namespace muster::logs
