#include "agent/logs/file_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "agent/logs/watch_thread.h"
#include "common/rundir/layout.h"

namespace muster::agent {
namespace {

// Opens one log and adds it to the run. Null: the run has it already.
Result<std::unique_ptr<LogTail>> add_log(PublishedRun& run, const LogName& name,
                                         PublishedRun::Kind kind, const rundir::RunLayout& layout,
                                         const std::shared_ptr<const Patterns>& patterns,
                                         const std::shared_ptr<io::DescriptorBudget>& budget,
                                         const std::shared_ptr<LogsDir>& dir) {
  const bool of_rank = kind == PublishedRun::Kind::Rank;
  const std::filesystem::path path =
      of_rank ? layout.rank_log(name.rank.value) : layout.node_log(name.auxiliary);
  auto opened = LogFile::open(
      path, of_rank ? layout.rank_cursor(name.rank.value) : layout.node_log_cursor(name.auxiliary),
      budget, dir);
  if (!opened) return fail(std::move(opened.error()));
  const std::shared_ptr<LogFile> file = std::move(*opened);
  if (!run.add(name, kind, file)) return nullptr;
  return std::make_unique<LogTail>(name, path, file, patterns);
}

// The watch searches for nothing in auxiliary logs.
Result<std::shared_ptr<const Patterns>> no_patterns() {
  v1::Watching nothing;
  nothing.set_grammar("none");
  return Patterns::make(nothing);
}

}  // namespace

FileWatch::FileWatch(WatchOptions options, Post post, WatchCallbacks callbacks,
                     std::shared_ptr<Inbox> inbox)
    : options_(std::move(options)),
      open_logs_(std::make_shared<io::DescriptorBudget>(
          options_.open_logs != 0
              ? options_.open_logs
              : std::clamp<std::size_t>(io::descriptor_limit() / 8, 4, 1 << 16))),
      reports_(std::move(post), std::move(callbacks)),
      inbox_(std::move(inbox)),
      thread_([this] { WatchThread(options_, reports_, inbox_).work(); }) {}

void FileWatch::stop() {
  inbox_->close();
  if (thread_.joinable()) thread_.join();
}

FileWatch::KnownPtr FileWatch::find(const RunKey& run) {
  const MutexLock lock(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : found->second;
}

std::vector<FileWatch::KnownPtr> FileWatch::all_runs() {
  const MutexLock lock(mutex_);
  std::vector<KnownPtr> runs;
  runs.reserve(runs_.size());
  for (const auto& [key, run] : runs_) runs.push_back(run);
  return runs;
}

Result<void> FileWatch::add(const RunKey& key, const std::filesystem::path& run_dir,
                            const v1::Watching& watching, const std::vector<std::uint32_t>& ranks,
                            const std::vector<std::string>& auxiliaries,
                            const std::map<std::uint32_t, std::string>& success_files,
                            const JobReach& reach) {
  const std::string doing =
      fmt::format("watching job '{}' attempt {}", key.first.str(), key.second.value);
  const rundir::RunLayout layout(run_dir);
  auto patterns = Patterns::make(watching);
  if (!patterns) return fail(std::move(patterns.error()).in(doing));
  auto checkpoints = CheckpointWatch::make(watching);
  if (!checkpoints) return fail(std::move(checkpoints.error()).in(doing));
  auto nothing = no_patterns();
  if (!nothing) return fail(std::move(nothing.error()).in(doing));

  RunParts parts{.run = nullptr,
                 .logs_dir = layout.logs(),
                 .tails = {},
                 .process_logs = {},
                 .success_files = {.own = success_files, .of_run = (*patterns)->success_file},
                 .saves = {},
                 .reach = reach};
  if (*checkpoints) parts.saves = (*checkpoints)->save_dir();
  const auto logs = std::make_shared<LogsDir>(layout.logs());
  parts.run = std::make_shared<PublishedRun>(key, marks_, std::move(*checkpoints));
  const std::set<std::string> names(auxiliaries.begin(), auxiliaries.end());
  for (const std::string& name : names) {
    auto tail = add_log(*parts.run, {.run = key, .rank = RankNo(0), .auxiliary = name},
                        PublishedRun::Kind::Auxiliary, layout, *nothing, open_logs_, logs);
    if (!tail) return fail(std::move(tail.error()).in(doing));
    if (*tail) parts.tails.push_back(std::move(*tail));
  }
  for (const std::uint32_t number : std::set<std::uint32_t>(ranks.begin(), ranks.end())) {
    auto tail = add_log(*parts.run, {.run = key, .rank = RankNo(number)}, PublishedRun::Kind::Rank,
                        layout, *patterns, open_logs_, logs);
    if (!tail) return fail(std::move(tail.error()).in(doing));
    if (!*tail) continue;
    if (const auto* latest = (*tail)->reader.latest()) parts.run->restore(RankNo(number), *latest);
    parts.tails.push_back(std::move(*tail));
    // The directory was created before the run was started, if it was.
    if (auto plog = std::make_unique<PlogReader>(layout.plog_dir(number)); plog->exists())
      parts.process_logs[number] = std::move(plog);
  }
  const auto known = std::make_shared<const Known>(Known{
      .run = parts.run, .run_dir = run_dir, .logs = logs, .patterns = *patterns, .ranks = ranks});
  {
    const MutexLock lock(mutex_);
    if (!runs_.emplace(key, known).second) return {};  // already known: add() is idempotent
  }
  inbox_->post(
      [parts = std::move(parts)](WatchThread* thread) mutable { thread->begin(std::move(parts)); });
  return {};
}

Result<void> FileWatch::follow(const RunKey& key, const ScriptLog& log) {
  const KnownPtr known = find(key);
  if (!known || known->ranks.empty()) return {};
  auto tail = add_log(*known->run, {.run = key, .rank = RankNo(0), .auxiliary = log.name},
                      PublishedRun::Kind::Copy, rundir::RunLayout(known->run_dir), known->patterns,
                      open_logs_, known->logs);
  if (!tail) return fail(std::move(tail.error()));
  if (!*tail) return {};
  (*tail)->copy = LogTail::Copy{.rank = log.rank};
  auto copy =
      std::make_shared<ScriptLogCopy>(log, known->run_dir, options_.open_script_log, known->logs);
  inbox_->post([key, tail = std::move(*tail), copy = std::move(copy)](WatchThread* thread) mutable {
    if (RunWatch* const run = thread->find(key))
      run->follow(std::move(tail), std::move(copy), system_clock().now().boot);
  });
  return {};
}

void FileWatch::rank_ended(const RunKey& key, RankNo rank, bool failed) {
  const KnownPtr known = find(key);
  if (!known || std::ranges::find(known->ranks, rank.value) == known->ranks.end()) return;
  known->run->rank_failed(rank, failed);
  inbox_->post([key, rank, failed](WatchThread* thread) {
    if (RunWatch* const run = thread->find(key)) run->ended(rank, failed);
  });
}

void FileWatch::run_swept(const RunKey& key) {
  inbox_->post([key](WatchThread* thread) {
    if (RunWatch* const run = thread->find(key)) run->swept(system_clock().now().boot);
  });
}

std::uint64_t FileWatch::bytes_read(const RunKey& key) {
  const KnownPtr known = find(key);
  return known ? known->run->bytes_read() : 0;
}

void FileWatch::remove(const RunKey& key) {
  KnownPtr known;
  {
    const MutexLock lock(mutex_);
    const auto found = runs_.find(key);
    if (found == runs_.end()) return;
    known = found->second;
    runs_.erase(found);
  }
  known->run->remove();
  inbox_->post([key](WatchThread* thread) { thread->end(key); });
}

bool FileWatch::logs_complete(const RunKey& key) {
  const KnownPtr known = find(key);
  return known && known->run->complete();
}

Readings FileWatch::readings(std::uint64_t since) {
  // Taken first: news that comes meanwhile may be in this reading, and is in the next one, too.
  Readings all{.mark = marks_->newest()};
  const BootTime now = system_clock().now().boot;
  for (const KnownPtr& known : all_runs())
    known->run->fill(all.readings.emplace_back(), since, now);
  return all;
}

std::vector<LogStatus> FileWatch::logs() {
  PublishedRun::Unshipped logs;
  for (const KnownPtr& known : all_runs()) known->run->add_unshipped(logs);
  for (auto* group : {&logs.auxiliaries, &logs.others})
    logs.failed.insert(logs.failed.end(), std::make_move_iterator(group->begin()),
                       std::make_move_iterator(group->end()));
  return std::move(logs.failed);
}

std::vector<LogName> FileWatch::logs_of(const RunKey& run) {
  const KnownPtr known = find(run);
  return known ? known->run->names() : std::vector<LogName>();
}

Result<LogPiece> FileWatch::read(const LogName& name, std::uint64_t from, std::size_t most) {
  const KnownPtr known = find(name.run);
  const std::shared_ptr<LogFile> file = known ? known->run->file(name) : nullptr;
  if (!file) return LogPiece{.offset = from};
  return file->read(from, most, known->run->ended(name));
}

void FileWatch::controller_has(const LogName& name, std::uint64_t offset, std::uint64_t synced,
                               bool complete) {
  const KnownPtr known = find(name.run);
  const std::shared_ptr<LogFile> file = known ? known->run->file(name) : nullptr;
  if (!file) return;
  file->controller_has(offset, synced);
  known->run->shipped(name, file->extent(), complete);
}

Result<std::unique_ptr<Watch>> Watch::start(WatchOptions options, Post post,
                                            WatchCallbacks callbacks) {
  auto inbox = Inbox::make();
  if (!inbox) return fail(std::move(inbox.error()));
  return std::unique_ptr<Watch>(
      new FileWatch(std::move(options), std::move(post), std::move(callbacks), std::move(*inbox)));
}

}  // namespace muster::agent
