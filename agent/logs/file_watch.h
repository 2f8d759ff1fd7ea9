// FileWatch is the only real Watch (watch.h). Agent (agent/loop.h) owns it. Any thread may call its
// public methods; its own thread does the work.
//
// This header shows its parts and which thread may use them. The sources are:
//   - watch.cc: methods that any thread calls
//   - watch_thread.cc: the watch thread, and how it reads logs
//   - watch_plogs.cc: process logs
//   - watch_scripts.cc: logs that are copies
//   - watch_scans.cc: scans on other threads
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agent/logs/inbox.h"
#include "agent/logs/inotify.h"
#include "agent/logs/plog_reader.h"
#include "agent/logs/progress.h"
#include "agent/logs/rank_reader.h"
#include "agent/logs/scan_threads.h"
#include "agent/logs/script_log_copy.h"
#include "agent/logs/watch.h"
#include "agent/saves/checkpoint_watch.h"
#include "common/io/descriptor_limit.h"

namespace muster::agent {

// One kind of scan of one run. At most one is running.
struct Scan {
  bool out = false;
  BootTime since{};          // when it was requested
  bool reported = false;     // the hang is reported
  std::uint64_t device = 0;  // 0: not known yet
};

// Source of an auxiliary log that is a copy. Only the watch thread uses it, except for the copying.
struct ScriptSource {
  std::uint32_t rank = 0;  // rank of the training
  std::shared_ptr<ScriptLogCopy> copy;
  Inotify::Owner own = 0;
  Scan scan;
  bool due = true;       // a new scan must begin
  bool end_due = false;  // a rank's end waits for that scan
  bool end_out = false;  // the running scan is that one
  bool over = false;     // the copy is final
  BootTime over_by{};    // latest time at which the copy becomes final; zero: not swept yet
};

// The log of a rank or of an auxiliary process.
struct WatchedRank {
  WatchedRank(std::uint32_t number, std::string auxiliary, std::shared_ptr<LogFile> file,
              const std::shared_ptr<const Patterns>& patterns)
      : number(number),
        auxiliary(std::move(auxiliary)),
        file(file),
        reader(std::move(file), patterns) {}
  const std::uint32_t number;
  const std::string auxiliary;  // not empty: the log of this process; number is 0 and unused
  const std::shared_ptr<LogFile> file;

  // Only the watch thread uses:
  RankReader reader;
  // Source of an auxiliary log that is a copy. Null: the process writes the log itself.
  std::unique_ptr<ScriptSource> source;
  // Null: the rank has no process log, or its end was answered.
  std::unique_ptr<PlogReader> plog;
  bool dirty = true;
  bool end_asked = false;
  bool troubled = false;

  // Under the mutex of FileWatch:
  LogFile::Extent extent;
  bool failed = false;
  bool ended = false;
  bool complete = false;
};

struct WatchedRun {
  RunKey key;
  std::filesystem::path logs_dir;
  std::shared_ptr<const Patterns> patterns;

  // Only the watch thread uses:
  bool begun = false;
  Inotify::Owner owner = 0;  // the next number is its save directory's
  bool logs_watched = false;
  bool first_step_reported = false;
  // Whose steps count for the script: a rank of the training, or -1 for the script's own log.
  std::optional<std::int64_t> speaker;

  // Scans; only the watch thread uses:
  Scan saves;
  bool scan_due = true;
  bool blind = false;       // the save directory's file system reports no changes
  BootTime scan_at{};       // earliest next scan
  BootTime scan_sure_at{};  // latest next scan
  enum class LastScan : std::uint8_t { No, Due, Out, Reported } last_scan = LastScan::No;
  BootTime last_scan_until{};                          // while last_scan is Due or Out
  std::map<std::uint32_t, std::string> success_files;  // by rank; never changes
  Scan success;
  using Ends = std::vector<std::pair<RankNo, RankEnd>>;
  Ends success_due, success_out;  // answers that wait for the next scan, and for the running one

  // Under the mutex of FileWatch (the first map never changes, the second only grows):
  std::map<std::uint32_t, std::unique_ptr<WatchedRank>> ranks;
  std::map<std::string, std::unique_ptr<WatchedRank>> auxiliaries;
  std::unique_ptr<CheckpointWatch> checkpoints;  // save_dir() needs no lock
  Progress progress;
  std::optional<BootTime> stepped_at;  // when a log reported its last step; empty: unknown
  bool swept = false;
  bool removed = false;

  // Only the watch thread uses it: the logs of both maps, auxiliary processes first.
  std::vector<WatchedRank*> logs;
  // Returns the path of the rank's success file. Empty: none.
  [[nodiscard]] const std::string& success_file(std::uint32_t rank) const;
  // Returns the first success file. Its file system counts as that of all of them.
  [[nodiscard]] const std::string& any_success_file() const;
  // Returns null if the run has no such log.
  [[nodiscard]] WatchedRank* log(const LogName& name) const;
};

class FileWatch final : public Watch {
 public:
  FileWatch(WatchOptions options, Post post, WatchCallbacks callbacks, std::shared_ptr<Inbox> inbox)
      : options_(std::move(options)),
        post_(std::move(post)),
        callbacks_(std::move(callbacks)),
        inbox_(std::move(inbox)),
        scans_(options_.scan_threads),
        buffer_(256 << 10),
        thread_([this] { work(); }) {}
  ~FileWatch() override { stop(); }

  void stop() override;
  Result<void> add(const RunKey& run, const std::filesystem::path& run_dir,
                   const v1::Watching& watching, const std::vector<std::uint32_t>& ranks,
                   const std::vector<std::string>& auxiliaries,
                   const std::map<std::uint32_t, std::string>& success_files = {}) override;
  Result<void> follow(const RunKey& run, const ScriptLog& log) override;
  void rank_ended(const RunKey& run, RankNo rank, bool failed) override;
  void run_swept(const RunKey& run) override;
  std::uint64_t bytes_read(const RunKey& run) override;
  void remove(const RunKey& run) override;
  bool logs_complete(const RunKey& run) override;
  Readings readings(std::uint64_t since) override;

  std::vector<LogStatus> logs() override;
  Result<LogPiece> read(const LogName& name, std::uint64_t from, std::size_t most) override;
  void controller_has(const LogName& name, std::uint64_t offset, std::uint64_t synced,
                      bool complete) override;
  void on_bytes(std::function<void()> wake) override;

 private:
  using RunPtr = std::shared_ptr<WatchedRun>;
  void work();
  RunPtr find(const RunKey& run);
  std::vector<RunPtr> all_runs();
  void tell(const RunPtr& run, std::function<void()> closure);
  void trouble(const RunPtr& run, WatchedRank* rank, const Error& error);
  void bytes_moved();

  void begin(const RunPtr& run);
  void end(const RunPtr& run);
  bool pass(BootTime now);
  bool read_rank(const RunPtr& run, WatchedRank& rank, BootTime now);
  void finish_rank(const RunPtr& run, WatchedRank& rank);
  void take_plog(WatchedRank& rank, RankEnd& answer, int reported);
  void read_plogs(const Now& now);
  void give_up_plogs();
  void tell_rank_end(const RunPtr& run, RankNo rank, RankEnd answer);

  void copy_script_log(const RunPtr& run, WatchedRank& rank);
  void script_log_copied(const RunPtr& run, WatchedRank& rank, bool last,
                         ScriptLogCopy::Round round);
  static void source_is_over(WatchedRank& rank);
  static void wake_script(WatchedRun& run);
  void check_script_logs(const RunPtr& run, BootTime now);
  static bool script_logs_pending(const WatchedRun& run);
  static bool speaks(WatchedRun& run, const WatchedRank& rank, bool tells);
  static int take_script_logs(const WatchedRun& run, WatchedRank& rank, RankEnd& answer,
                              bool failed, int reported);

  struct SavesSeen;  // result of a scan
  [[nodiscard]] static ScanThreads::Lane lane_of(const Scan& scan, Inotify::Owner own);
  void send(Scan& scan, Inotify::Owner own, ScanThreads::Work work);
  void came_back(Scan& scan, Inotify::Owner own, std::uint64_t device);
  void scan_saves(const RunPtr& run, BootTime now);
  void saves_seen(const RunPtr& run, SavesSeen seen);
  void check_success(const RunPtr& run);
  void success_seen(const RunPtr& run, const std::vector<bool>& there, std::uint64_t device);
  void last_scan_due(const RunPtr& run);
  void report_last_scan(const RunPtr& run);
  [[nodiscard]] BootTime scans_until();
  void check_scans(BootTime now);
  void check_scan(const WatchedRun& run, Scan& scan, Inotify::Owner own, BootTime now,
                  const char* doing, const std::string& path);

  void ask_kernel();
  void watch_logs(WatchedRun& run);
  void scan_blindly();
  void keep_room(BootTime now);
  // Returns nullopt if the number is unknown.
  [[nodiscard]] std::optional<std::uint64_t> free_bytes(const std::filesystem::path& dir) const;
  [[nodiscard]] Duration scan_interval();
  void say(std::string text);
  void changed(Inotify::Owner owner, std::string_view name);

  const WatchOptions options_;
  // Each log needs two descriptors. All logs together use at most a quarter of the process's limit.
  const std::shared_ptr<io::DescriptorBudget> open_logs_ = std::make_shared<io::DescriptorBudget>(
      options_.open_logs != 0 ? options_.open_logs
                              : std::clamp<std::size_t>(io::descriptor_limit() / 8, 4, 1 << 16));
  const Post post_;
  const WatchCallbacks callbacks_;

  std::mutex mutex_;
  std::map<RunKey, RunPtr> runs_;
  std::uint64_t mark_ = 0;
  bool stopping_ = false;

  std::mutex wake_mutex_;  // locked while `wake_` runs, so that on_bytes can wait for its end
  std::function<void()> wake_;

  const std::shared_ptr<Inbox> inbox_;
  ScanThreads scans_;

  // Only the watch thread uses:
  Inotify inotify_;
  std::vector<char> buffer_;
  std::map<Inotify::Owner, RunPtr> owners_;
  Inotify::Owner next_owner_ = 0;
  bool room_troubled_ = false;
  BootTime room_at_{};   // next check of the disk's free bytes
  BootTime plogs_at_{};  // next check of the bytes of process logs
  bool instance_troubled_ = false, watches_troubled_ = false, threads_troubled_ = false;
  std::set<ScanThreads::Lane> hangs_reported_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace muster::agent
