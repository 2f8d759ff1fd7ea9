#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>

#include "controller/logs/file_log_store.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKeepNewest = 64 << 10;  // of a running job's log, whatever the quota says
constexpr std::uint64_t kEvictStep = 16 << 20;
constexpr std::string_view kRemoved = ".removed-";  // no job's id begins with a dot

std::uint64_t bytes_on_disk(const fs::path& path) {
  struct stat now{};
  return ::stat(path.c_str(), &now) == 0 ? static_cast<std::uint64_t>(now.st_blocks) * 512 : 0;
}

WallTime modified_at(const fs::path& path) {
  struct stat now{};
  if (::lstat(path.c_str(), &now) != 0) return {};
  return WallTime(std::chrono::seconds(now.st_mtim.tv_sec) + std::chrono::nanoseconds(now.st_mtim.tv_nsec));
}

// A person's own folder, or a file system's lost+found, is nobody's to remove.
bool looks_like_a_job(const fs::path& folder) {
  const auto digits = [](const std::string& text) { return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }); };
  bool any = false;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name != "series" && name != kSeriesNew && !digits(name)) return false;
    any = true;
  }
  return any && !error;
}

}  // namespace

void FileLogStore::measure() {
  std::error_code error;
  for (fs::directory_iterator at(root_, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->path().filename().string().starts_with(kRemoved)) fs::remove_all(at->path(), ignored);
  }
  for (fs::recursive_directory_iterator at(root_, fs::directory_options::skip_permission_denied, error), end; !error && at != end; at.increment(error)) {
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
    const std::scoped_lock lock(mutex_);
    jobs = jobs_locked();
  }
  std::erase_if(jobs, [&](const JobId& job) { return !looks_like_a_job(job_dir(job)); });
  return jobs;
}

WallTime FileLogStore::written_at(const JobId& job) {
  WallTime last = modified_at(job_dir(job));
  std::error_code error;
  for (fs::recursive_directory_iterator at(job_dir(job), error), end; !error && at != end; at.increment(error)) {
    last = std::max(last, modified_at(at->path()));
  }
  return last;
}

// --- finished and removed jobs ---------------------------------------------------------------------------------------------------------

void FileLogStore::mark_finished(const JobId& job) {
  {
    const std::scoped_lock lock(mutex_);
    if (finished_.emplace(job, marked_).second) {
      evictable_.emplace(marked_++, job);
      let_go_synced(job);
    }
  }
  // Behind the mark: points that come now find it, and keep no file open.
  const std::scoped_lock lock(series_mutex_);
  series_.erase(job);
}

void FileLogStore::let_go_synced(const JobId& job) {
  for (auto at = logs_.lower_bound({job, AttemptNo(0), RankNo(0)}); at != logs_.end() && at->first.job == job;) {
    at = dirty_.contains(at->first) ? std::next(at) : let_go(at);
  }
}

Result<void> FileLogStore::remove(const JobId& job) {
  const std::string doing = fmt::format("removing the logs of job '{}'", job.str());
  fs::path aside;
  {
    const std::scoped_lock lock(series_mutex_, mutex_);
    for (auto at = logs_.lower_bound({job, AttemptNo(0), RankNo(0)}); at != logs_.end() && at->first.job == job; at = let_go(at)) dirty_.erase(at->first);
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

// --- the quota -------------------------------------------------------------------------------------------------------------------------

// Errors leave the log as it is: the disk itself then says when it is full.
void FileLogStore::make_room() {
  const WallTime now = system_clock().now().wall;
  while (used_ > quota_ && !evictable_.empty()) {
    const JobId job = evictable_.begin()->second;
    evictable_.erase(evictable_.begin());
    for (const LogKey& key : list_locked(job)) {
      auto held = get(key);
      if (!held) continue;
      if (const auto went = (*held)->log.evict(UINT64_MAX / 2, 0, now)) used_ -= std::min(used_, *went);
    }
    let_go_synced(job);
  }
  while (used_ > quota_) {
    const auto largest = largest_unfinished();
    if (!largest) return;
    auto held = get(*largest);
    if (!held) return;
    const auto went = (*held)->log.evict(std::max<std::uint64_t>(used_ - quota_, std::min<std::uint64_t>(kEvictStep, quota_ / 16)), kKeepNewest, now);
    if (!went || *went == 0) return;
    used_ -= std::min(used_, *went);
  }
}

// Asked of the disk: of a job's earlier attempts nothing is in memory any more.
std::optional<LogKey> FileLogStore::largest_unfinished() {
  std::optional<LogKey> largest;
  std::uint64_t most = 0;
  for (const JobId& job : jobs_locked()) {
    if (finished_.contains(job)) continue;
    for (const LogKey& key : list_locked(job)) {
      const auto held = logs_.find(key);
      const std::uint64_t bytes = held == logs_.end() ? bytes_on_disk(base(key).string() + ".log") : held->second.log.held_bytes();
      if (bytes <= most) continue;
      most = bytes;
      largest = key;
    }
  }
  return largest;
}

}  // namespace muster::logs
