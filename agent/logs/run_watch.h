// RunWatch is one watched run: a list with one Watcher (watcher.h) for each subject that the run
// has. WatchThread (watch_thread.h) owns it; only the watch thread uses it.
//
// The order of the list is the order in which the watchers explain the end of a rank: its log, the
// logs of a script's ranks, process logs, the disk, and then the success file, which takes over
// endings that must wait for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "agent/launch/job_reach.h"
#include "agent/logs/log_tails.h"
#include "agent/logs/process_logs.h"
#include "agent/logs/published_run.h"
#include "agent/logs/script_logs.h"
#include "agent/logs/success_files.h"
#include "agent/logs/watch_tools.h"
#include "agent/logs/watcher.h"
#include "agent/saves/checkpoint_watch.h"

namespace muster::agent {

// What FileWatch has prepared for a run.
struct RunParts {
  std::shared_ptr<PublishedRun> run;
  std::filesystem::path logs_dir;
  std::vector<std::unique_ptr<LogTail>> tails;  // auxiliary logs first
  ProcessLogs::Readers process_logs;
  SuccessFiles::Paths success_files;
  std::optional<SaveDir> saves;  // empty: the run saves no checkpoints
  JobReach reach{};              // for success files and checkpoints
};

class RunWatch final : public RankEndings {
 public:
  RunWatch(WatchTools& tools, RunParts parts);
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;
  ~RunWatch() override = default;

  // Methods of all its watchers.
  bool pass(BootTime now);
  [[nodiscard]] BootTime next_due() const;
  void poll(const Now& now);
  void ended(RankNo rank, bool failed);
  void swept(BootTime now);
  void free_room();

  // Before or after swept().
  void follow(std::unique_ptr<LogTail> tail, std::shared_ptr<ScriptLogCopy> copy, BootTime now);
  [[nodiscard]] std::vector<std::shared_ptr<LogFile>> log_files() const { return logs_->files(); }
  [[nodiscard]] const std::filesystem::path& logs_dir() const { return logs_dir_; }

  [[nodiscard]] bool wait() const override;
  void explain(RankEnding ending) override;
  void report(const RankEnding& ending) override;

 private:
  WatchTools& tools_;
  const std::shared_ptr<PublishedRun> run_;
  const std::filesystem::path logs_dir_;
  const bool saves_;
  bool swept_ = false;
  std::shared_ptr<LogTails> logs_;
  std::shared_ptr<ScriptLogs> scripts_;  // null: the run follows no such log
  std::vector<std::shared_ptr<Watcher>> watchers_;
};

}  // namespace muster::agent
