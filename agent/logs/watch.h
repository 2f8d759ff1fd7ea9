// Watch reads the files of the agent's attempts: logs, checkpoints and success files. Agent
// (agent/loop.h) owns it. It has a thread of its own (the watch thread); any thread may call its
// methods.
//
//   - It reads every rank's log once, in one pass, for progress, the first step and the success
//     pattern.
//   - Auxiliary logs are all logs except the ranks' own: those of the setup and of MindSpore's
//     scheduler, and those added by follow(). Without follow(), they are read only for the log
//     link.
//   - Save directories, success files and logs that a node's script writes for its ranks are where
//     jobs put them, on file systems that may hang. Scan threads (scan_threads.h) read them, one
//     for each file system. A file system that hangs delays only its own checkpoints, success files
//     and such logs.
//   - It is also the LogSource of agent/link/log_push.
//
// It owns the agent's one inotify instance, the cursor files of the logs and the holes in them. It
// starts and signals no process and sends nothing. Files that inotify does not report are scanned
// from time to time. Without an inotify instance, the agent notices changes later, by
// `unnotified_scan`, and logs that once.
//
// Threads: no method waits for file I/O of other runs (rank_ended and run_swept post to the watch
// thread). Callbacks go through `post` to the agent's loop, one closure each. After stop() has
// returned, only closures that were posted before still run. After remove() none is posted for that
// run. Neither remove() nor stop() waits for a scan that hangs.
//
// Order for one run: add, any number of rank_ended, run_swept, and then remove, when the controller
// has the complete logs. After a restart of the agent, the loop calls the same methods again for
// the runs in its run directories. The cursors let the log bytes continue at their old offsets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/launch/job_reach.h"
#include "agent/logs/log_source.h"
#include "agent/logs/script_log_copy.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/engine/model/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct WatchOptions {
  // Bytes of one rank's log that are kept on this node. More are kept only while the controller has
  // not synced them.
  std::uint64_t soft_cap = 1ull << 30;
  // Bytes of one rank's process log on this node.
  std::uint64_t plog_cap = 128ull << 20;
  // If the file system has fewer free bytes, the oldest unshipped bytes are removed, too.
  std::uint64_t disk_mark = 256ull << 20;
  Duration coalesce = std::chrono::milliseconds(20);  // between two passes over the logs
  // Interval of scans where inotify reports nothing, as on network file systems.
  Duration blind_scan = std::chrono::seconds(1);
  // The same for logs of live runs that inotify does not report at all. A person who follows a log
  // accepts a delay of a tenth of a second. Ten scans of 64 ranks in a second cost less than 1 % of
  // a core.
  Duration unnotified_scan = std::chrono::milliseconds(100);
  // Free bytes of the file system of a path; empty: statvfs. Tests set it.
  std::function<std::uint64_t(const std::filesystem::path&)> free_bytes;
  std::function<int(int flags)> inotify_init;  // empty: inotify_init1. Tests set it.
  // Logs that stay open between two reads, each with its cursor file. 0: as many as the limit of
  // descriptors allows.
  std::size_t open_logs = 0;

  // Scans that may wait for file systems at the same time. This many file systems may hang before
  // others must wait; runs whose file system is not known yet wait earlier (scan_threads.h).
  std::size_t scan_threads = 64;
  // A scan that takes longer is reported as trouble, once for each file system.
  Duration hang_after = std::chrono::seconds(2);
  // Longest wait for the last scan of a swept run. It is longer than hang_after. A checkpoint that
  // the scan finds later than this costs the steps since the previous checkpoint.
  Duration last_scan = std::chrono::seconds(15);
  // How scans read files; empty: from the disk. They are called on scan threads, possibly after
  // stop(). Tests set them.
  std::function<std::shared_ptr<const engine::FileView>()> view;
  std::function<bool(const std::string& path)> file_there;
  std::function<std::uint64_t(const std::string& path)> device_of;  // disk_view.h
  ScriptLogCopy::Open open_script_log;                              // open(2)
};

struct RankEnd {
  std::string evidence;  // at most 1,024 bytes; empty: the log shows no reason
  // The success pattern was in the log, the success file exists, or the log shows the last step.
  bool success_seen = false;
  v1::EvidenceKind evidence_kind = v1::EVIDENCE_KIND_UNSPECIFIED;
  std::optional<std::int64_t> step;   // the last step in the log
  std::optional<std::int64_t> total;  // and its total
};

struct Readings {
  std::uint64_t mark = 0;  // of the newest entry; grows while this Watch exists
  std::vector<v1::AttemptReading> readings;
};

struct WatchCallbacks {
  // Called once for each run and incarnation of the agent.
  std::function<void(const RunKey&, std::int64_t step)> on_first_step;
  // The answer to rank_ended.
  std::function<void(const RunKey&, RankNo, const RankEnd&)> on_rank_end;
  // One more shard is finished or a checkpoint is sealed: send a heartbeat now.
  std::function<void(const RunKey&)> on_shard_finished;
  // The answer to run_swept: all checkpoints of the run are in readings(). If the file system hangs
  // longer than `last_scan` (on_trouble reports it), they follow when it answers, with
  // on_shard_finished.
  std::function<void(const RunKey&)> on_last_scan;
  // One line for the agent's log, once for each cause.
  std::function<void(const std::string& text)> on_trouble;
};

class Watch : public LogSource {
 public:
  using Post = std::function<void(std::function<void()>)>;
  // Starts the thread. Errors: no descriptor is left to wake the thread.
  static Result<std::unique_ptr<Watch>> start(WatchOptions options, Post post,
                                              WatchCallbacks callbacks);
  ~Watch() override = default;
  // Ends the thread. Idempotent. After it only LogSource's methods may be called; they find nothing
  // new.
  virtual void stop() = 0;

  // Starts to watch a run. Errors: an unknown grammar, layout or pattern.
  //   - `run_dir` is the run directory (common/rundir). Its logs/ folder need not exist yet.
  //   - `auxiliaries` are the names of auxiliary logs (RunLayout::node_log), whether they exist or
  //     not.
  //   - `success_files` are by rank, for ranks with a success file of their own (RankProcess).
  //   - `reach` bounds where success files and checkpoints are read.
  virtual Result<void> add(const RunKey& run, const std::filesystem::path& run_dir,
                           const v1::Watching& watching, const std::vector<std::uint32_t>& ranks,
                           const std::vector<std::string>& auxiliaries,
                           const std::map<std::uint32_t, std::string>& success_files,
                           const JobReach& reach) = 0;
  // Makes the file into which the run's script (its only rank) sends the output of a training rank
  // an auxiliary log. The file counts for the script: its steps, its success, and why it ended.
  // After run_swept the file is copied at most for `last_scan`. Idempotent. The file may be on any
  // file system, even one that hangs.
  // Errors: its cursor cannot be read.
  virtual Result<void> follow(const RunKey& run, const ScriptLog& log) = 0;
  // The rank's process is gone. Reads its log to the present end and then answers with on_rank_end.
  // With `failed` this log is read first, and the answer does not wait for a success file. The
  // answer for another rank waits for its success file as long as the file system hangs: the caller
  // must bound the wait.
  virtual void rank_ended(const RunKey& run, RankNo rank, bool failed) = 0;
  // No process of the run is left on this node, so its logs and its checkpoints here are final. A
  // scan that begins after this call reads the checkpoints once more; then on_last_scan is called.
  virtual void run_swept(const RunKey& run) = 0;
  // Returns the bytes of the run's logs that have been read so far.
  [[nodiscard]] virtual std::uint64_t bytes_read(const RunKey& run) = 0;
  // Forgets the run and closes its files. The caller deletes the directory.
  virtual void remove(const RunKey& run) = 0;
  // Reports whether the controller has every log of the run completely, auxiliary logs included.
  [[nodiscard]] virtual bool logs_complete(const RunKey& run) = 0;

  // Returns one reading for each run: the latest state of every rank, and the samples and shards
  // after mark `since`. Pass the mark of the newest acknowledged heartbeat. Pass 0 in the first
  // heartbeat of a connection, because a restarted controller knows nothing. It gets all shards of
  // the two newest steps, and all samples that are not acknowledged. Samples below `since` are
  // forgotten. If there are more than 1,000, they are thinned, the older ones first.
  virtual Readings readings(std::uint64_t since) = 0;
};

}  // namespace muster::agent
