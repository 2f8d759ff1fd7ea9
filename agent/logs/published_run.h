// PublishedRun is what other threads may see of one watched run: how far its logs are read, its
// progress and its checkpoints. FileWatch and the run's RunWatch share it (shared_ptr). Any thread
// may call it; only the watch thread calls the methods of the second part. No file I/O.
//
// One mutex protects all data, and it is locked for one method at a time. A mark numbers each piece
// of news (Marks, shared by all runs). It is taken under the mutex, so a reading that has a newer
// mark has the news.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/logs/log_file.h"
#include "agent/logs/log_source.h"
#include "agent/logs/progress.h"
#include "agent/saves/checkpoint_watch.h"
#include "common/base/mutex.h"
#include "common/base/time.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

class Marks {
 public:
  std::uint64_t next() { return ++newest_; }
  [[nodiscard]] std::uint64_t newest() const { return newest_; }

 private:
  std::atomic<std::uint64_t> newest_ = 0;
};

class PublishedRun {
 public:
  // `checkpoints`: null if the run saves none.
  PublishedRun(RunKey run, std::shared_ptr<Marks> marks,
               std::unique_ptr<CheckpointWatch> checkpoints)
      : key(std::move(run)), marks_(std::move(marks)), checkpoints_(std::move(checkpoints)) {}
  const RunKey key;

  // Who writes a log: its rank, an auxiliary process, or the agent, as the copy of what a node's
  // script writes for a rank.
  enum class Kind : std::uint8_t { Rank, Auxiliary, Copy };
  // False: the run has this log already.
  bool add(const LogName& name, Kind kind, std::shared_ptr<LogFile> file) MUSTER_EXCLUDES(mutex_);
  // Takes the progress that an earlier incarnation of the agent knew.
  void restore(RankNo rank, const engine::StepLine& latest) MUSTER_EXCLUDES(mutex_);
  // The same, unless some progress is known.
  void restore_first(RankNo rank, const engine::StepLine& latest) MUSTER_EXCLUDES(mutex_);

  // After this call nothing is reported for the run any more.
  void remove() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool removed() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::uint64_t bytes_read() const MUSTER_EXCLUDES(mutex_);
  // Reports whether the controller has every log completely.
  [[nodiscard]] bool complete() const MUSTER_EXCLUDES(mutex_);
  void fill(v1::AttemptReading& reading, std::uint64_t since, BootTime now) MUSTER_EXCLUDES(mutex_);

  // Logs that are not complete, in the groups in which they are shipped.
  struct Unshipped {
    std::vector<LogStatus> failed, auxiliaries, others;
  };
  void add_unshipped(Unshipped& to) const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<LogName> names() const MUSTER_EXCLUDES(mutex_);
  // Returns null if the run has no such log.
  [[nodiscard]] std::shared_ptr<LogFile> file(const LogName& name) const MUSTER_EXCLUDES(mutex_);
  // No process writes the log any more, and all of it was read.
  [[nodiscard]] bool ended(const LogName& name) const MUSTER_EXCLUDES(mutex_);
  // `extent` was read before the call. One that is older than what is known is ignored.
  void shipped(const LogName& name, const LogFile::Extent& extent, bool complete)
      MUSTER_EXCLUDES(mutex_);
  // The rank ended badly: its log is shipped first.
  void rank_failed(RankNo rank, bool failed) MUSTER_EXCLUDES(mutex_);

  // --- the watch thread --------------------------------------------------------------------------
  // As shipped().
  void set_extent(const LogName& name, const LogFile::Extent& extent) MUSTER_EXCLUDES(mutex_);
  void set_ended(const LogName& name) MUSTER_EXCLUDES(mutex_);
  struct StepsRead {
    RankNo rank;
    std::vector<engine::StepLine> steps;
    bool loss_vanished = false;
    bool count = false;  // false: another log reports the run's steps
    Duration behind{};   // age of the bytes, if they are the first with steps
  };
  // Returns the step that is the rank's first one in this call, if the run has progress.
  std::optional<std::int64_t> take_steps(const StepsRead& read, const Now& now)
      MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool stepped() const MUSTER_EXCLUDES(mutex_);
  // Takes the result of a scan. Returns true if a shard was finished or a checkpoint was sealed.
  bool take_checkpoints(std::vector<engine::FoundCheckpoint> found, std::string unknown,
                        BootTime now, bool last) MUSTER_EXCLUDES(mutex_);

 private:
  struct Log {
    Kind kind = Kind::Rank;
    std::shared_ptr<LogFile> file;
    LogFile::Extent extent;
    void advance(const LogFile::Extent& to);
    bool failed = false;
    bool ended = false;
    bool complete = false;
  };
  [[nodiscard]] std::uint64_t bytes_copied() const MUSTER_REQUIRES(mutex_);

  const std::shared_ptr<Marks> marks_;
  mutable Mutex mutex_;
  std::map<LogName, Log> logs_ MUSTER_GUARDED_BY(mutex_);  // only grows
  const std::unique_ptr<CheckpointWatch> checkpoints_ MUSTER_PT_GUARDED_BY(mutex_);
  Progress progress_ MUSTER_GUARDED_BY(mutex_);
  // When a log reported its last step; empty: unknown.
  std::optional<BootTime> stepped_at_ MUSTER_GUARDED_BY(mutex_);
  bool removed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::agent
