#include "agent/logs/watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/logs/file_watch.h"
#include "common/proto/proto_time.h"
#include "common/rundir/layout.h"

namespace muster::agent {

namespace {

// The watch searches for nothing in auxiliary logs.
Result<void> open_auxiliaries(WatchedRun& run, const rundir::RunLayout& layout,
                              const std::vector<std::string>& names,
                              const std::shared_ptr<io::DescriptorBudget>& budget) {
  if (names.empty()) return {};
  v1::Watching nothing;
  nothing.set_grammar("none");
  auto patterns = Patterns::make(nothing);
  if (!patterns) return fail(std::move(patterns.error()));
  for (const std::string& name : names) {
    if (run.auxiliaries.contains(name)) continue;
    auto file = LogFile::open(layout.node_log(name), layout.node_log_cursor(name), budget);
    if (!file) return fail(std::move(file.error()));
    run.auxiliaries.emplace(
        name, std::make_unique<WatchedRank>(0, name, std::shared_ptr<LogFile>(std::move(*file)),
                                            *patterns));
  }
  return {};
}

google::protobuf::Duration step_age(Duration since) {
  return to_proto(std::max(since, Duration::zero()));
}

// Bytes of the copied logs of the script's ranks, in a run whose only rank is the script.
std::uint64_t bytes_copied(const WatchedRun& run) {
  std::uint64_t bytes = 0;
  for (const auto& [name, log] : run.auxiliaries)
    if (log->source) bytes += log->extent.end;
  return bytes;
}

}  // namespace

void FileWatch::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  inbox_->close();
  scans_.close();
  if (thread_.joinable()) thread_.join();
}

FileWatch::RunPtr FileWatch::find(const RunKey& run) {
  const std::scoped_lock lock(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : found->second;
}

std::vector<FileWatch::RunPtr> FileWatch::all_runs() {
  const std::scoped_lock lock(mutex_);
  std::vector<RunPtr> runs;
  runs.reserve(runs_.size());
  for (const auto& [key, run] : runs_) runs.push_back(run);
  return runs;
}

const std::string& WatchedRun::success_file(std::uint32_t rank) const {
  const auto own = success_files.find(rank);
  return own == success_files.end() ? patterns->success_file : own->second;
}

const std::string& WatchedRun::any_success_file() const {
  return success_files.empty() ? patterns->success_file : success_files.begin()->second;
}

WatchedRank* WatchedRun::log(const LogName& name) const {
  if (!name.auxiliary.empty()) {
    const auto found = auxiliaries.find(name.auxiliary);
    return found == auxiliaries.end() ? nullptr : found->second.get();
  }
  const auto found = ranks.find(name.rank.value);
  return found == ranks.end() ? nullptr : found->second.get();
}

Result<void> FileWatch::add(const RunKey& key, const std::filesystem::path& run_dir,
                            const v1::Watching& watching, const std::vector<std::uint32_t>& ranks,
                            const std::vector<std::string>& auxiliaries,
                            const std::map<std::uint32_t, std::string>& success_files) {
  const std::string doing =
      fmt::format("watching job '{}' attempt {}", key.first.str(), key.second.value);
  const rundir::RunLayout layout(run_dir);
  const auto run = std::make_shared<WatchedRun>();
  run->key = key;
  run->logs_dir = layout.logs();
  run->success_files = success_files;
  auto patterns = Patterns::make(watching);
  if (!patterns) return fail(std::move(patterns.error()).in(doing));
  run->patterns = std::move(*patterns);
  auto checkpoints = CheckpointWatch::make(watching);
  if (!checkpoints) return fail(std::move(checkpoints.error()).in(doing));
  run->checkpoints = std::move(*checkpoints);
  for (const std::uint32_t number : ranks) {
    auto file = LogFile::open(layout.rank_log(number), layout.rank_cursor(number), open_logs_);
    if (!file) return fail(std::move(file.error()).in(doing));
    auto rank = std::make_unique<WatchedRank>(
        number, std::string(), std::shared_ptr<LogFile>(std::move(*file)), run->patterns);
    if (const auto* latest = rank->reader.latest()) run->progress.restore(number, *latest);
    std::error_code none;  // created before the run was started, if it was
    if (std::filesystem::is_directory(layout.plog_dir(number), none))
      rank->plog = std::make_unique<PlogReader>(layout.plog_dir(number));
    run->ranks.emplace(number, std::move(rank));
  }
  if (auto opened = open_auxiliaries(*run, layout, auxiliaries, open_logs_); !opened)
    return fail(std::move(opened.error()).in(doing));
  for (const auto& [name, log] : run->auxiliaries) run->logs.push_back(log.get());
  for (const auto& [number, rank] : run->ranks) run->logs.push_back(rank.get());
  {
    const std::scoped_lock lock(mutex_);
    if (!runs_.emplace(key, run).second) return {};  // already known: add() is idempotent
  }
  inbox_->post([this, run] { begin(run); });
  return {};
}

void FileWatch::rank_ended(const RunKey& key, RankNo number, bool failed) {
  const RunPtr run = find(key);
  const auto found = run ? run->ranks.find(number.value) : decltype(run->ranks.find(0)){};
  if (!run || found == run->ranks.end()) return;
  WatchedRank* rank = found->second.get();
  {
    const std::scoped_lock lock(mutex_);
    rank->failed = failed;
  }
  inbox_->post([run, rank] {
    rank->end_asked = true;
    rank->dirty = true;
    for (const WatchedRank* log : run->logs)
      if (log->source) log->source->due = log->source->end_due = !log->source->over;
  });
}

void FileWatch::run_swept(const RunKey& key) {
  const RunPtr run = find(key);
  if (!run) return;
  inbox_->post([this, run] {
    {
      const std::scoped_lock lock(mutex_);
      run->swept = true;
    }
    for (WatchedRank* log : run->logs) {
      log->dirty = true;
      if (!log->source) continue;
      log->source->due = !log->source->over;
      log->source->over_by = system_clock().now().boot + options_.last_scan;
    }
    last_scan_due(run);
  });
}

std::uint64_t FileWatch::bytes_read(const RunKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = runs_.find(key);
  std::uint64_t bytes = 0;
  if (found == runs_.end()) return bytes;
  for (const auto& [number, rank] : found->second->ranks) bytes += rank->extent.end;
  return bytes + bytes_copied(*found->second);
}

void FileWatch::remove(const RunKey& key) {
  RunPtr run;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = runs_.find(key);
    if (found == runs_.end()) return;
    run = found->second;
    run->removed = true;
    runs_.erase(found);
  }
  inbox_->post([this, run] { end(run); });
}

bool FileWatch::logs_complete(const RunKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = runs_.find(key);
  const auto complete = [](const auto& log) { return log.second->complete; };
  return found != runs_.end() && std::ranges::all_of(found->second->ranks, complete) &&
         std::ranges::all_of(found->second->auxiliaries, complete);
}

Readings FileWatch::readings(std::uint64_t since) {
  const std::scoped_lock lock(mutex_);
  Readings all{.mark = mark_};
  for (const auto& [key, run] : runs_) {
    v1::AttemptReading& reading = all.readings.emplace_back();
    reading.set_job_id(key.first.str());
    reading.set_attempt(key.second.value);
    for (const auto& [number, rank] : run->ranks) {
      v1::RankReading& to = *reading.add_ranks();
      to.set_rank(number);
      to.set_log_bytes(rank->extent.end + bytes_copied(*run));
    }
    run->progress.fill(reading, since);
    if (run->stepped_at)
      *reading.mutable_step_age() = step_age(system_clock().now().boot - *run->stepped_at);
    if (run->checkpoints) run->checkpoints->fill(reading, since);
  }
  return all;
}

std::vector<LogStatus> FileWatch::logs() {
  std::vector<LogStatus> failed, auxiliaries, others;
  const std::scoped_lock lock(mutex_);
  for (const auto& [key, run] : runs_) {
    const auto take = [&](const WatchedRank& log) {
      if (log.complete) return;
      auto& group = log.failed ? failed : log.auxiliary.empty() ? others : auxiliaries;
      group.push_back({{key, RankNo(log.number), log.auxiliary},
                       log.extent.end,
                       log.extent.segment,
                       log.ended,
                       log.failed});
    };
    for (const auto& [name, log] : run->auxiliaries) take(*log);
    for (const auto& [number, log] : run->ranks) take(*log);
  }
  for (auto* group : {&auxiliaries, &others})
    failed.insert(failed.end(), std::make_move_iterator(group->begin()),
                  std::make_move_iterator(group->end()));
  return failed;
}

Result<LogPiece> FileWatch::read(const LogName& name, std::uint64_t from, std::size_t most) {
  std::shared_ptr<LogFile> file;
  bool ended = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = runs_.find(name.run);
    const WatchedRank* log = found == runs_.end() ? nullptr : found->second->log(name);
    if (log == nullptr) return LogPiece{.offset = from};
    file = log->file;
    ended = log->ended;
  }
  return file->read(from, most, ended);
}

void FileWatch::controller_has(const LogName& name, std::uint64_t offset, std::uint64_t synced,
                               bool complete) {
  const RunPtr run = find(name.run);
  WatchedRank* log = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    if (run) log = run->log(name);
  }
  if (log == nullptr) return;
  log->file->controller_has(offset, synced);
  const LogFile::Extent extent = log->file->extent();
  const std::scoped_lock lock(mutex_);
  log->extent = extent;
  if (complete) log->complete = true;
}

void FileWatch::on_bytes(std::function<void()> wake) {
  const std::scoped_lock lock(wake_mutex_);
  wake_ = std::move(wake);
}

Result<std::unique_ptr<Watch>> Watch::start(WatchOptions options, Post post,
                                            WatchCallbacks callbacks) {
  auto inbox = Inbox::make();
  if (!inbox) return fail(std::move(inbox.error()));
  return std::unique_ptr<Watch>(
      new FileWatch(std::move(options), std::move(post), std::move(callbacks), std::move(*inbox)));
}

}  // namespace muster::agent
