// The one real Watch: see watch.h. Here are its parts and who may touch them; watch.cc has what any
// thread calls, watch_thread.cc what the thread does with logs, watch_scripts.cc with those that
// are copies, watch_scans.cc what it has other threads look at.
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

#include "agent/watch/checkpoint_watch.h"
#include "agent/watch/inbox.h"
#include "agent/watch/inotify.h"
#include "agent/watch/plog_reader.h"
#include "agent/watch/progress.h"
#include "agent/watch/rank_reader.h"
#include "agent/watch/scan_threads.h"
#include "agent/watch/script_log_copy.h"
#include "agent/watch/watch.h"
#include "common/io/descriptor_limit.h"

namespace muster::agent {

// One kind of look of one run: at most one is under way.
struct Scan {
  bool out = false;
  BootTime since{};          // when it was asked for
  bool reported = false;     // that it hangs
  std::uint64_t device = 0;  // 0: not known yet
};

// Of a log that is a copy: where it is copied from. The watch's thread, but for the copying itself.
struct ScriptSource {
  std::uint32_t rank = 0;  // of the training
  std::shared_ptr<ScriptLogCopy> copy;
  Inotify::Owner own = 0;
  Scan scan;
  bool due = true;       // a look that begins from now on
  bool end_due = false;  // somebody waits for that one
  bool end_out = false;  // the one that is out is it
  bool over = false;     // the copy is all there will be
  BootTime over_by{};    // it is then at the latest; none: before the sweep
};

// A rank's log, or that of a process beside the ranks.
struct WatchedRank {
  WatchedRank(std::uint32_t number, std::string auxiliary, std::shared_ptr<LogFile> file,
              const std::shared_ptr<const Patterns>& patterns)
      : number(number),
        auxiliary(std::move(auxiliary)),
        file(file),
        reader(std::move(file), patterns) {}
  const std::uint32_t number;
  const std::string auxiliary;  // not empty: of this process; number is 0 and says nothing
  const std::shared_ptr<LogFile> file;

  // The watch's thread:
  RankReader reader;
  // of an auxiliary process; none: its process writes the log itself
  std::unique_ptr<ScriptSource> source;
  // none: it has no process log of its own, or its end was answered
  std::unique_ptr<PlogReader> plog;
  bool dirty = true;
  bool end_asked = false;
  bool troubled = false;

  // Under Watch's mutex:
  LogFile::Extent extent;
  bool failed = false;
  bool ended = false;
  bool complete = false;
};

struct WatchedRun {
  RunKey key;
  std::filesystem::path logs_dir;
  std::shared_ptr<const Patterns> patterns;

  // The watch's thread:
  bool begun = false;
  Inotify::Owner owner = 0;  // +1: its save directory's
  bool logs_watched = false;
  bool first_step_reported = false;
  // whose steps are the script's: a rank of the training, or -1 for the script's own log
  std::optional<std::int64_t> speaker;

  // Looks, the watch's thread:
  Scan saves;
  bool scan_due = true;
  bool blind = false;       // its save directory is on a file system that does not tell
  BootTime scan_at{};       // not before
  BootTime scan_sure_at{};  // at the latest
  enum class LastScan : std::uint8_t { No, Due, Out, Reported } last_scan = LastScan::No;
  BootTime last_scan_until{};                          // while it is Due or Out
  std::map<std::uint32_t, std::string> success_files;  // by rank, over the run's; never changes
  Scan success;
  using Ends = std::vector<std::pair<RankNo, RankEnd>>;
  Ends success_due, success_out;  // answers that wait for the next look, for the one that is out

  // Under Watch's mutex (the first map never changes, the second only grows):
  std::map<std::uint32_t, std::unique_ptr<WatchedRank>> ranks;
  std::map<std::string, std::unique_ptr<WatchedRank>> auxiliaries;
  std::unique_ptr<CheckpointWatch> checkpoints;  // save_dir(): any time
  Progress progress;
  std::optional<BootTime> stepped_at;  // when a log told its last step; nothing: none is known
  bool swept = false;
  bool removed = false;

  // the watch's thread: all of both maps, the auxiliary processes' first
  std::vector<WatchedRank*> logs;
  // Where the rank's success file is looked for. Empty: nowhere.
  [[nodiscard]] const std::string& success_file(std::uint32_t rank) const;
  // The first of them, which tells which file system they are on.
  [[nodiscard]] const std::string& any_success_file() const;
  // Null: the run has no such log.
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

  struct SavesSeen;  // what a look brings
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
  // nothing: nobody can tell
  [[nodiscard]] std::optional<std::uint64_t> free_bytes(const std::filesystem::path& dir) const;
  [[nodiscard]] Duration scan_interval();
  void say(std::string text);
  void changed(Inotify::Owner owner, std::string_view name);

  const WatchOptions options_;
  // Two descriptors a log: a quarter of what this process may have, at most.
  const std::shared_ptr<io::DescriptorBudget> open_logs_ = std::make_shared<io::DescriptorBudget>(
      options_.open_logs != 0 ? options_.open_logs
                              : std::clamp<std::size_t>(io::descriptor_limit() / 8, 4, 1 << 16));
  const Post post_;
  const WatchCallbacks callbacks_;

  std::mutex mutex_;
  std::map<RunKey, RunPtr> runs_;
  std::uint64_t mark_ = 0;
  bool stopping_ = false;

  std::mutex wake_mutex_;  // held while `wake_` runs, so that on_bytes can end it
  std::function<void()> wake_;

  const std::shared_ptr<Inbox> inbox_;
  ScanThreads scans_;

  // The watch's thread:
  Inotify inotify_;
  std::vector<char> buffer_;
  std::map<Inotify::Owner, RunPtr> owners_;
  Inotify::Owner next_owner_ = 0;
  bool room_troubled_ = false;
  BootTime room_at_{};   // next look at the disk's room
  BootTime plogs_at_{};  // next look at the bytes of process logs
  bool instance_troubled_ = false, watches_troubled_ = false, threads_troubled_ = false;
  std::set<ScanThreads::Lane> hangs_reported_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace muster::agent
