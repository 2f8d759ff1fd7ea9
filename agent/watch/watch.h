// Watch: what the agent sees in the files of its attempts. One thread of its own reads every rank's
// log once, in one pass: progress, the first step, the success pattern. Logs of processes beside
// the ranks (the setup, MindSpore's scheduler) are read for the log link alone. Save directories,
// success files and the logs that a node's script has its ranks write lie where jobs put them, on
// file systems that may hang: they are looked at on other threads (scan_threads.h), one a file
// system, and one that hangs delays the checkpoints, success files and such logs of that file
// system alone. It also is the LogSource of agent/link/log_push.
//
// Owns: the agent's one inotify instance, the cursor files of the logs and the holes in them.
// Starts, signals and reports nothing. What inotify does not tell of is looked at now and then: an
// agent without an instance is slower to see, by `unnotified_scan`, and says so once.
// Threads: every method may be called from any thread and does not wait for file I/O of other runs
// (rank_ended and run_swept post to the thread). Callbacks go through `post`, the loop's executor,
// one closure each; none comes after stop() has returned, other than closures that were posted
// before. After remove() none is posted for that run. Neither remove() nor stop() waits for a look
// that hangs.
// Order for one run: add, then any number of rank_ended, then run_swept, then (the controller has
// the whole logs) remove. After a restart of the agent the loop calls the same methods again for
// what its run directories hold; cursors make the log bytes go on where they were.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/watch/log_source.h"
#include "agent/watch/script_log_copy.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/engine/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct WatchOptions {
  // bytes of one rank's log kept on this node beyond what the controller has not synced
  std::uint64_t soft_cap = 1ull << 30;
  // bytes of one rank's process log on this node
  std::uint64_t plog_cap = 128ull << 20;
  // free bytes of the file system below which the oldest unshipped bytes go too
  std::uint64_t disk_mark = 256ull << 20;
  Duration coalesce = std::chrono::milliseconds(20);  // between two passes over the logs
  // looks without being told: network file systems do not tell
  Duration blind_scan = std::chrono::seconds(1);
  // The same for logs of live runs that inotify does not tell of at all. A person who follows a log
  // bears a tenth of a second, and ten looks at 64 ranks a second cost less than 1 % of a core.
  Duration unnotified_scan = std::chrono::milliseconds(100);
  // Free bytes of the file system that holds a path; empty: statvfs. Tests set it.
  std::function<std::uint64_t(const std::filesystem::path&)> free_bytes;
  std::function<int(int flags)> inotify_init;  // empty: inotify_init1. Tests set it.
  // kept open between two looks, each with its cursor file; 0: as many as the limit of descriptors
  // lets
  std::size_t open_logs = 0;

  // Looks that wait for file systems at the same time: as many file systems (or runs whose file
  // system is not known yet) may hang before others must wait.
  std::size_t scan_threads = 32;
  // A look that has not come back by then is told as trouble, once a file system.
  Duration hang_after = std::chrono::seconds(2);
  // A swept run's last look is waited for no longer. Longer than a hang takes to be told: what it
  // finds too late costs the steps since the checkpoint before.
  Duration last_scan = std::chrono::seconds(15);
  // What looks see; empty: the disk. Called on threads of their own, and perhaps after stop().
  // Tests set them.
  std::function<std::shared_ptr<const engine::FileView>()> view;
  std::function<bool(const std::string& path)> file_there;
  std::function<std::uint64_t(const std::string& path)> device_of;  // disk_view.h
  ScriptLogCopy::Open open_script_log;                              // open(2)
};

struct RankEnd {
  std::string evidence;  // at most 1,024 bytes; empty: nothing in the log tells
  // the success pattern was in the log, the success file is there, or the log shows the training's
  // last step
  bool success_seen = false;
  v1::EvidenceKind evidence_kind = v1::EVIDENCE_KIND_UNSPECIFIED;
  std::optional<std::int64_t> step;   // the last one that the log tells
  std::optional<std::int64_t> total;  // and of how many
};

struct Readings {
  std::uint64_t mark = 0;  // of the newest thing in it; grows over the life of this Watch
  std::vector<v1::AttemptReading> readings;
};

struct WatchCallbacks {
  // once a run and life of the agent
  std::function<void(const RunKey&, std::int64_t step)> on_first_step;
  // the answer to rank_ended
  std::function<void(const RunKey&, RankNo, const RankEnd&)> on_rank_end;
  // a shard more is finished, or a checkpoint sealed: send a heartbeat now
  std::function<void(const RunKey&)> on_shard_finished;
  // The answer to run_swept: all checkpoints it left are in readings(). Or its file system hangs
  // (`last_scan`, and on_trouble says so): then they are when it answers, told by
  // on_shard_finished.
  std::function<void(const RunKey&)> on_last_scan;
  // one line for the agent's log; said once a cause
  std::function<void(const std::string& text)> on_trouble;
};

class Watch : public LogSource {
 public:
  using Post = std::function<void(std::function<void()>)>;
  // Starts the thread. Errors: no descriptor left for it to be woken by.
  static Result<std::unique_ptr<Watch>> start(WatchOptions options, Post post,
                                              WatchCallbacks callbacks);
  ~Watch() override = default;
  // Ends the thread; idempotent. Nothing else may be called after it but LogSource's methods, which
  // then find nothing new.
  virtual void stop() = 0;

  // `run_dir` is the run directory (common/rundir), its logs/ folder need not be there yet;
  // `auxiliaries`: names of the logs beside the ranks' (RunLayout:: node_log), written or not;
  // `success_files`: by rank, of those that have one of their own (RankProcess). Errors: a grammar,
  // layout or pattern that is not known.
  virtual Result<void> add(const RunKey& run, const std::filesystem::path& run_dir,
                           const v1::Watching& watching, const std::vector<std::uint32_t>& ranks,
                           const std::vector<std::string>& auxiliaries,
                           const std::map<std::uint32_t, std::string>& success_files = {}) = 0;
  // A file into which the run's script (its only rank) sends the output of a rank of the training
  // becomes a log beside the ranks', and counts for the script: its steps, its success, and why it
  // ended. Before run_swept; idempotent. The file may lie anywhere, and hang. Errors: its cursor
  // cannot be read.
  virtual Result<void> follow(const RunKey& run, const ScriptLog& log) = 0;
  // The rank's process is gone: read its log to its present end, then answer through on_rank_end.
  // `failed` puts its log first in the queue, and its answer waits for no success file. That of
  // another rank does, however long its file system hangs: the caller has the bound.
  virtual void rank_ended(const RunKey& run, RankNo rank, bool failed) = 0;
  // No process of the run is left on this node: its logs are final, and so are its checkpoints
  // here, which are looked at once more, by a look that begins after this call; then on_last_scan.
  virtual void run_swept(const RunKey& run) = 0;
  // Bytes of the run's logs that have been read so far.
  [[nodiscard]] virtual std::uint64_t bytes_read(const RunKey& run) = 0;
  // Forgets the run and closes its files; the directory is the caller's to delete.
  virtual void remove(const RunKey& run) = 0;
  // Every log, of ranks and of those beside them, is wholly at the controller.
  [[nodiscard]] virtual bool logs_complete(const RunKey& run) = 0;

  // One reading a run: every rank's latest, and the samples and shards that came after mark
  // `since`. Give the mark of the newest acknowledged heartbeat, 0 in the first heartbeat of a
  // connection
  // (a controller that was restarted knows nothing: all shards of the two newest steps, all samples
  // not yet acknowledged). Samples below `since` are forgotten; more than 1,000 are thinned, the
  // older ones first.
  virtual Readings readings(std::uint64_t since) = 0;
};

}  // namespace muster::agent
