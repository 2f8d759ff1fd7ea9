// Syncs several logs in parallel; waits for the disk without the mutex. The order for each log is:
// bytes and names, then the end mark, then the report.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

#include "controller/logs/file_log_store.h"

namespace muster::logs {
namespace {

// A log that ends waits for the disk four times, and the disk serves several threads at once. With
// one thread, jobs that end faster than that would pile up on their nodes, which keep each job
// until its log is durable.
constexpr std::size_t kSyncThreads = 4;
constexpr std::size_t kLogsAThread = 8;  // for fewer logs, another thread is not worth its start

}  // namespace

Result<void> FileLogStore::sync_file(const io::UniqueFd& fd, const std::string& path) const {
  if (calls_.file(fd.get()) != 0) return fail_errno(fmt::format("syncing '{}'", path), errno);
  return {};
}

Synced FileLogStore::sync() {
  std::vector<LogKey> keys;
  {
    const MutexLock lock(mutex_);
    keys.assign(dirty_.begin(), dirty_.end());
  }
  std::vector<Result<std::optional<LogState>>> states(keys.size());
  std::vector<std::vector<LogKey>> set_back(keys.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    // Each is synced once per thread: the files of what is dirty now are already made.
    std::set<std::filesystem::path> folders;
    for (std::size_t at = next++; at < keys.size(); at = next++)
      states[at] = sync_one(keys[at], folders, set_back[at]);
  };
  {
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < kSyncThreads && (others.size() + 1) * kLogsAThread < keys.size())
        others.emplace_back(work);
    } catch (const std::system_error&) {  // the existing threads do all the work
    }
    work();
  }
  Synced synced;
  for (std::size_t at = 0; at < keys.size(); ++at) {
    synced.set_back.insert(synced.set_back.end(), set_back[at].begin(), set_back[at].end());
    if (states[at] && *states[at]) synced.logs.emplace_back(keys[at], **states[at]);
    if (states[at] || synced.error) continue;
    const MutexLock lock(mutex_);
    if (dirty_.contains(keys[at])) synced.error = std::move(states[at].error());
  }
  return synced;
}

// What is not removed now, the next sync tries again.
Result<void> FileLogStore::set_back_locked(const LogKey& key, RankLog& log,
                                           std::vector<LogKey>& set_back) {
  const std::uint64_t before = log.size();
  auto done = log.set_back();
  if (log.size() == before) return done;
  used_ -= std::min(used_, before - log.size());
  set_back.push_back(key);
  return done;
}

Result<std::optional<LogState>> FileLogStore::sync_one(const LogKey& key,
                                                       std::set<std::filesystem::path>& folders,
                                                       std::vector<LogKey>& set_back) {
  std::uint64_t size = 0;
  bool named = false;
  io::UniqueFd bytes;
  {
    const MutexLock lock(mutex_);
    if (!dirty_.contains(key)) return std::nullopt;
    auto stored = get(key);
    if (!stored) return fail(std::move(stored.error()));
    if ((*stored)->log.unsound()) {
      if (auto done = set_back_locked(key, (*stored)->log, set_back); !done)
        return fail(std::move(done.error()));
    }
    size = (*stored)->log.size();
    named = (*stored)->named;
    auto handle = (*stored)->log.sync_handle();
    if (!handle) return fail(std::move(handle.error()));
    bytes = *std::move(handle);
  }
  if (auto done = sync_file(bytes, base(key).string() + ".log"); !done) {
    const MutexLock lock(mutex_);
    if (!dirty_.contains(key)) return std::nullopt;
    if (auto stored = get(key); stored) (void)set_back_locked(key, (*stored)->log, set_back);
    return fail(std::move(done.error()));
  }
  if (!named) {
    if (auto done = sync_folders(key, folders); !done) return fail(std::move(done.error()));
  }
  io::UniqueFd index;
  {
    const MutexLock lock(mutex_);
    // A dirty log stays in memory, so this is the same log, unless its job was removed.
    if (!dirty_.contains(key)) return std::nullopt;
    auto stored = get(key);
    if (!stored) return fail(std::move(stored.error()));
    (*stored)->named = true;
    const auto marked = (*stored)->log.synced(size);
    if (!marked) return fail(marked.error());
    if (!*marked) return synced_locked(key, (*stored)->log);
    auto handle = (*stored)->log.index_handle();
    if (!handle) return fail(std::move(handle.error()));
    index = *std::move(handle);
  }
  auto done = sync_file(index, base(key).string() + ".index");
  const MutexLock lock(mutex_);
  if (!dirty_.contains(key)) return std::nullopt;
  auto stored = get(key);
  if (!stored) return fail(std::move(stored.error()));
  if (!done) {
    (*stored)->log.index_sync_failed();
    return fail(std::move(done.error()));
  }
  (*stored)->log.end_synced();
  return synced_locked(key, (*stored)->log);
}

LogState FileLogStore::synced_locked(const LogKey& key, const RankLog& log) {
  const LogState state = log.state();
  if (!log.sync_due()) dirty_.erase(key);
  if (state.durable) let_go(logs_.find(key));
  return state;
}

// A power cut may remove names as well.
Result<void> FileLogStore::sync_folders(const LogKey& key,
                                        std::set<std::filesystem::path>& synced) const {
  for (const std::filesystem::path& folder : {base(key).parent_path(), job_dir(key.job), root_}) {
    if (synced.contains(folder)) continue;
    const io::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || calls_.folder(fd.get()) != 0)
      return fail_errno(fmt::format("syncing folder '{}'", folder.string()), errno);
    synced.insert(folder);
  }
  return {};
}

}  // namespace muster::logs
