// FileWatch is the only real Watch (watch.h). Agent (agent/loop.h) owns it. Any thread may call its
// public methods.
//
// It has the table of the runs as other threads see them (PublishedRun), and the watch thread. What
// the thread works with is in WatchThread (watch_thread.h), which only the thread itself has; here
// tasks are posted to it. So each type belongs either to the watch thread or to every thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/logs/inbox.h"
#include "agent/logs/logs_dir.h"
#include "agent/logs/published_run.h"
#include "agent/logs/rank_reader.h"
#include "agent/logs/watch.h"
#include "agent/logs/watch_reports.h"
#include "common/base/mutex.h"
#include "common/io/descriptor_limit.h"

namespace muster::agent {

class FileWatch final : public Watch {
 public:
  FileWatch(WatchOptions options, Post post, WatchCallbacks callbacks,
            std::shared_ptr<Inbox> inbox);
  ~FileWatch() override { stop(); }

  void stop() override;
  Result<void> add(const RunKey& run, const std::filesystem::path& run_dir,
                   const v1::Watching& watching, const std::vector<std::uint32_t>& ranks,
                   const std::vector<std::string>& auxiliaries,
                   const std::map<std::uint32_t, std::string>& success_files,
                   const JobReach& reach) override;
  Result<void> follow(const RunKey& run, const ScriptLog& log) override;
  void rank_ended(const RunKey& run, RankNo rank, bool failed) override;
  void run_swept(const RunKey& run) override;
  std::uint64_t bytes_read(const RunKey& run) override;
  void remove(const RunKey& run) override;
  bool logs_complete(const RunKey& run) override;
  Readings readings(std::uint64_t since) override;

  std::vector<LogStatus> logs() override;
  std::vector<LogName> logs_of(const RunKey& run) override;
  Result<LogPiece> read(const LogName& name, std::uint64_t from, std::size_t most) override;
  void controller_has(const LogName& name, std::uint64_t offset, std::uint64_t synced,
                      bool complete) override;
  void on_bytes(std::function<void()> wake) override { reports_.on_bytes(std::move(wake)); }

 private:
  // A run as FileWatch keeps it. All of it is constant; the shared objects protect themselves.
  struct Known {
    std::shared_ptr<PublishedRun> run;
    std::filesystem::path run_dir;
    std::shared_ptr<LogsDir> logs;
    std::shared_ptr<const Patterns> patterns;
    std::vector<std::uint32_t> ranks;
  };
  using KnownPtr = std::shared_ptr<const Known>;
  // Null: no such run.
  [[nodiscard]] KnownPtr find(const RunKey& run) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<KnownPtr> all_runs() MUSTER_EXCLUDES(mutex_);

  const WatchOptions options_;
  // Each log needs two descriptors. All logs together use at most a quarter of the process's limit.
  // The one of each run's LogsDir is not counted.
  const std::shared_ptr<io::DescriptorBudget> open_logs_;
  const std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();
  WatchReports reports_;
  Mutex mutex_;
  std::map<RunKey, KnownPtr> runs_ MUSTER_GUARDED_BY(mutex_);
  const std::shared_ptr<Inbox> inbox_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace muster::agent
