#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>

#include "common/io/room.h"
#include "controller/logs/file_log_store.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

// Of a running job's log, whatever the quota requires.
constexpr std::uint64_t kKeepNewest = 64 << 10;
constexpr std::uint64_t kEvictStep = 16 << 20;
// free for the journal's start, whatever logs exist
constexpr std::uint64_t kStartBytes = 16 << 20;
constexpr std::uint64_t kInodesKept = 128;  // for the journal and the daemon's own files
// More than the number below which the controller accepts no job.
constexpr std::uint64_t kInodesWanted = 512;
constexpr std::string_view kRemoved = ".removed-";  // no job's id begins with a dot
constexpr std::string_view kFinished = "finished";

std::uint64_t bytes_on_disk(const fs::path& path) {
  struct stat now{};
  return ::stat(path.c_str(), &now) == 0 ? static_cast<std::uint64_t>(now.st_blocks) * 512 : 0;
}

WallTime modified_at(const fs::path& path) {
  struct stat now{};
  if (::lstat(path.c_str(), &now) != 0) return {};
  return WallTime(std::chrono::seconds(now.st_mtim.tv_sec) +
                  std::chrono::nanoseconds(now.st_mtim.tv_nsec));
}

// The store must not remove a person's own directory, or a file system's lost+found.
bool is_job_folder(const fs::path& folder) {
  const auto digits = [](const std::string& text) {
    return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  bool any = false;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name == kFinished) continue;
    if (name != "series" && name != kSeriesNew && !digits(name)) return false;
    any = true;
  }
  return any && !error;
}

}  // namespace

void FileLogStore::measure() {
  const MutexLock lock(mutex_);
  std::error_code error;
  std::vector<std::pair<WallTime, JobId>> finished;
  for (fs::directory_iterator at(root_, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    if (name.starts_with(kRemoved)) {
      fs::remove_all(at->path(), ignored);
    } else if (const WallTime marked = modified_at(at->path() / kFinished); marked != WallTime{}) {
      finished.emplace_back(marked, name);
    }
  }
  std::ranges::sort(finished);
  for (auto& [marked, job] : finished) {
    finished_.emplace(job, marked_);
    evictable_.emplace(marked_++, std::move(job));
  }
  for (fs::recursive_directory_iterator
           at(root_, fs::directory_options::skip_permission_denied, error),
       end;
       !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".log") used_ += bytes_on_disk(at->path());
  }
}

std::vector<JobId> FileLogStore::jobs_locked() const {
  std::vector<JobId> jobs;
  std::error_code error;
  for (fs::directory_iterator at(root_, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (!name.starts_with('.')) jobs.emplace_back(std::move(name));
  }
  return jobs;
}

std::vector<JobId> FileLogStore::jobs() {
  std::vector<JobId> jobs;
  {
    const MutexLock lock(mutex_);
    jobs = jobs_locked();
  }
  std::erase_if(jobs, [&](const JobId& job) { return !is_job_folder(job_dir(job)); });
  return jobs;
}

WallTime FileLogStore::written_at(const JobId& job) {
  WallTime last{};
  std::error_code error;
  for (fs::recursive_directory_iterator at(job_dir(job), error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename() != kFinished) last = std::max(last, modified_at(at->path()));
  }
  // The time of the directory is also that of the mark.
  return last == WallTime{} ? modified_at(job_dir(job)) : last;
}

// --- finished and removed jobs -------------------------------------------------------------------

void FileLogStore::mark_finished(const JobId& job) {
  {
    const MutexLock lock(mutex_);
    if (finished_.emplace(job, marked_).second) {
      evictable_.emplace(marked_++, job);
      let_go_synced(job);
      keep_mark(job);
    }
  }
  // Runs after the mark: points that arrive now find the mark, and keep no file open.
  const MutexLock lock(series_mutex_);
  series_.erase(job);
}

void FileLogStore::unmark_finished(const JobId& job) {
  const MutexLock lock(mutex_);
  const auto marked = finished_.find(job);
  if (marked == finished_.end()) return;
  evictable_.erase(marked->second);
  finished_.erase(marked);
  ::unlink((job_dir(job) / kFinished).c_str());
}

// If the disk does not accept the mark, or there is no directory yet, the next start sets it again.
void FileLogStore::keep_mark(const JobId& job) const {
  const io::UniqueFd made(
      ::open((job_dir(job) / kFinished).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made) return;
  // The time of the mark decides its order among the others. The kernel's own time may be the same
  // for several marks.
  const auto now = system_clock().now().wall.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const timespec at{.tv_sec = seconds.count(), .tv_nsec = (now - seconds).count()};
  const timespec times[] = {at, at};
  ::futimens(made.get(), times);
}

void FileLogStore::let_go_synced(const JobId& job) {
  for (auto at = logs_.lower_bound({job, AttemptNo(0), RankNo(0)});
       at != logs_.end() && at->first.job == job;) {
    at = dirty_.contains(at->first) ? std::next(at) : let_go(at);
  }
}

Result<void> FileLogStore::remove(const JobId& job) {
  const std::string doing = fmt::format("removing the logs of job '{}'", job.str());
  fs::path aside;
  {
    const MutexLock series_lock(series_mutex_);
    const MutexLock lock(mutex_);
    for (auto at = logs_.lower_bound({job, AttemptNo(0), RankNo(0)});
         at != logs_.end() && at->first.job == job; at = let_go(at))
      dirty_.erase(at->first);
    series_.erase(job);
    if (const auto marked = finished_.find(job); marked != finished_.end()) {
      evictable_.erase(marked->second);
      finished_.erase(marked);
    }
    std::uint64_t bytes = 0;
    for (const LogKey& key : list_locked(job)) bytes += bytes_on_disk(base(key).string() + ".log");
    aside = root_ / fmt::format("{}{}-{}", kRemoved, job.str(), ++removed_);
    if (::rename(job_dir(job).c_str(), aside.c_str()) != 0) {
      if (errno == ENOENT) return {};
      return fail_errno(doing, errno);
    }
    used_ -= std::min(used_, bytes);
  }
  std::error_code error;
  fs::remove_all(aside, error);
  if (error) return fail_errno(doing, error.value());
  return {};
}

// --- the quota -----------------------------------------------------------------------------------

// An error leaves the log as it is; the disk itself then reports when it is full. The record of an
// eviction is written before the bytes go, and a full disk may have no room for it. Such a job is
// tried again when others have made room.
std::uint64_t FileLogStore::take_finished(std::uint64_t want) {
  constexpr std::uint64_t kNot = UINT64_MAX;
  const WallTime now = system_clock().now().wall;
  std::uint64_t taken = 0;
  std::vector<std::pair<std::uint64_t, JobId>> again;
  while (taken < want && !evictable_.empty()) {
    auto [place, job] = *evictable_.begin();
    evictable_.erase(evictable_.begin());
    bool all = true;
    for (const LogKey& key : list_locked(job)) {
      auto stored = get(key);
      const std::uint64_t went =
          stored ? (*stored)->log.evict(UINT64_MAX / 2, 0, now).value_or(kNot) : kNot;
      all = all && went != kNot;
      if (went == kNot) continue;
      used_ -= std::min(used_, went);
      taken += went;
    }
    let_go_synced(job);
    if (!all) again.emplace_back(place, std::move(job));
  }
  evictable_.insert(again.begin(), again.end());
  return taken;
}

std::uint64_t FileLogStore::take_largest(std::uint64_t want) {
  const auto largest = largest_unfinished();
  if (!largest) return 0;
  auto stored = get(*largest);
  if (!stored) return 0;
  const auto went = (*stored)->log.evict(want, kKeepNewest, system_clock().now().wall);
  if (!went) return 0;
  used_ -= std::min(used_, *went);
  return *went;
}

std::uint64_t FileLogStore::evict_step() const {
  return std::min<std::uint64_t>(kEvictStep, quota_ / 16);
}

void FileLogStore::keep_quota() {
  if (used_ > quota_) take_finished(used_ - quota_);
  while (used_ > quota_) {
    if (take_largest(std::max(used_ - quota_, evict_step())) == 0) return;
  }
}

// --- the disk's own share ------------------------------------------------------------------------

// Whoever used the space, the logs of finished jobs are removed for it. Then the log of an
// unfinished job gives up one step, so that this is rare. If that is not enough, it gives up two
// bytes for each byte that arrives. So the disk gets back what logs took, but another program that
// fills the disk does not use up all logs.
Result<void> FileLogStore::keep_free(const LogKey& key, std::uint64_t coming) {
  if (room_.wanted == 0 || coming == 0) return {};
  const auto room = io::room_at(root_);
  const std::string doing = fmt::format("writing log '{}.log'", base(key).string());
  if (!room) return fail(Error(room.error()).in(doing));
  if (std::error_code ignored;
      room->inodes < kInodesKept && !fs::exists(base(key).string() + ".log", ignored))
    return fail(
        ErrorCode::ResourceExhausted,
        fmt::format("{}: its disk has {} inodes left (df -i), which are kept for the journal",
                    doing, room->inodes));
  const std::uint64_t wanted = room_.wanted + coming;
  const auto is_free = [&](std::uint64_t bytes) {
    const auto now = io::room_at(root_);
    return now && now->bytes >= bytes;
  };
  if (room->bytes >= wanted || (take_finished(wanted - room->bytes) > 0 && is_free(wanted))) {
    starved_ = false;
    return {};
  }
  const std::uint64_t twice = 2 * std::max(coming, kKeepNewest);
  const std::uint64_t went = take_largest(starved_ ? twice : std::max(twice, evict_step()));
  starved_ = !is_free(wanted);
  if (starved_ && went < coming && !is_free(room_.least + coming)) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("{}: less than {} MiB of its disk are free, which are kept for the "
                            "journal, and older logs can give no more; make room there",
                            doing, room_.least >> 20));
  }
  return {};
}

void FileLogStore::make_room() {
  {
    const MutexLock lock(mutex_);
    if (const auto room = io::room_at(root_); room && room->bytes < room_.wanted)
      take_finished(room_.wanted - room->bytes);
  }
  while (const auto job = to_give_inodes()) {
    if (!remove(*job)) return;
  }
}

// A log whose bytes were evicted still has its files. If there are too few inodes for new files, a
// finished job gives up all of its own.
std::optional<JobId> FileLogStore::to_give_inodes() {
  const MutexLock lock(mutex_);
  const auto room = io::room_at(root_);
  if (room_.wanted == 0 || !room || room->inodes >= kInodesWanted) return std::nullopt;
  const auto oldest =
      std::ranges::min_element(finished_, {}, [](const auto& marked) { return marked.second; });
  return oldest == finished_.end() ? std::nullopt : std::optional(oldest->first);
}

void FileLogStore::room_for_start() {
  make_room();
  const MutexLock lock(mutex_);
  for (std::uint64_t taken = 0; taken < 2 * kStartBytes;) {
    const auto room = io::room_at(root_);
    if (!room || room->bytes >= std::min(room_.wanted, kStartBytes)) return;
    const std::uint64_t went = take_largest(kStartBytes - room->bytes);
    if (went == 0) return;
    taken += went;
  }
}

// Reads the sizes from the disk, because the earlier attempts of a job are no longer in memory.
std::optional<LogKey> FileLogStore::largest_unfinished() {
  std::optional<LogKey> largest;
  std::uint64_t most = 0;
  for (const JobId& job : jobs_locked()) {
    if (finished_.contains(job)) continue;
    for (const LogKey& key : list_locked(job)) {
      const auto stored = logs_.find(key);
      const std::uint64_t bytes = stored == logs_.end() ? bytes_on_disk(base(key).string() + ".log")
                                                        : stored->second.log.stored_bytes();
      if (bytes <= most) continue;
      most = bytes;
      largest = key;
    }
  }
  return largest;
}

}  // namespace muster::logs
