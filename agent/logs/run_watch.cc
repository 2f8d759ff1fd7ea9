#include "agent/logs/run_watch.h"

#include <algorithm>
#include <utility>

#include "agent/logs/checkpoint_scans.h"
#include "agent/logs/full_disk.h"

namespace muster::agent {

RunWatch::RunWatch(WatchTools& tools, RunParts parts)
    : tools_(tools),
      run_(std::move(parts.run)),
      logs_dir_(std::move(parts.logs_dir)),
      saves_(parts.saves.has_value()),
      logs_(std::make_shared<LogTails>(tools, run_, *this, logs_dir_, std::move(parts.tails))) {
  watchers_.push_back(logs_);
  if (!parts.process_logs.empty())
    watchers_.push_back(std::make_shared<ProcessLogs>(tools, std::move(parts.process_logs)));
  watchers_.push_back(std::make_shared<FullDisk>(tools, logs_dir_));
  if (!parts.success_files.any().empty())
    watchers_.push_back(std::make_shared<SuccessFiles>(
        tools, *run_, *this, std::move(parts.success_files), parts.reach));
  if (parts.saves)
    watchers_.push_back(std::make_shared<CheckpointScans>(tools, run_, std::move(*parts.saves),
                                                          std::move(parts.reach)));
}

void RunWatch::follow(std::unique_ptr<LogTail> tail, std::shared_ptr<ScriptLogCopy> copy,
                      BootTime now) {
  if (!scripts_) {
    scripts_ = std::make_shared<ScriptLogs>(tools_, run_, *logs_);
    watchers_.insert(watchers_.begin() + 1, scripts_);
  }
  scripts_->follow(std::move(tail), std::move(copy));
  if (swept_) scripts_->swept(now);
}

bool RunWatch::pass(BootTime now) {
  bool more = false;
  for (const auto& watcher : watchers_) more = watcher->pass(now) || more;
  return more;
}

BootTime RunWatch::next_due() const {
  BootTime due = BootTime::max();
  for (const auto& watcher : watchers_) due = std::min(due, watcher->next_due());
  return due;
}

void RunWatch::poll(const Now& now) {
  for (const auto& watcher : watchers_) watcher->poll(now);
}

void RunWatch::ended(RankNo rank, bool failed) {
  for (const auto& watcher : watchers_) watcher->ended(rank, failed);
}

void RunWatch::swept(BootTime now) {
  swept_ = true;
  for (const auto& watcher : watchers_) watcher->swept(now);
  if (!saves_) tools_.reports.last_scan(*run_);  // there is nothing to scan once more
}

void RunWatch::free_room() {
  for (const auto& watcher : watchers_) watcher->free_room();
}

bool RunWatch::wait() const {
  return std::ranges::any_of(watchers_, [](const auto& watcher) { return watcher->end_waits(); });
}

void RunWatch::explain(RankEnding ending) {
  for (const auto& watcher : watchers_)
    if (!watcher->explain(ending)) return;
  report(ending);
}

void RunWatch::report(const RankEnding& ending) {
  tools_.reports.rank_end(*run_, ending.rank, ending.answer);
}

}  // namespace muster::agent
