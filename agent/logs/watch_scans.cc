// The scans that may hang. Each scan is work of one lane (scan_threads.h). It returns a value
// through the inbox, and the watch thread takes the value here.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/launch/disk_view.h"
#include "agent/logs/file_watch.h"

namespace muster::agent {
namespace {

constexpr Duration kScanApart = std::chrono::milliseconds(50);
// Where the kernel reports changes, but only of the directories that could be watched.
constexpr Duration kScanSure = std::chrono::seconds(10);

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

struct FileWatch::SavesSeen {
  std::vector<engine::FoundCheckpoint> found;
  std::string unknown;
  std::vector<Inotify::Asked> dirs;
  std::uint64_t device = 0;
  bool network = false;
  Duration took{};
};

// While its file system is unknown, a scan has a lane of its own. `own` is a number that no other
// lane has.
ScanThreads::Lane FileWatch::lane_of(const Scan& scan, Inotify::Owner own) {
  return scan.device != 0 ? ScanThreads::Lane{ScanThreads::LaneKind::Device, scan.device}
                          : ScanThreads::Lane{ScanThreads::LaneKind::Run, own};
}

void FileWatch::send(Scan& scan, Inotify::Owner own, ScanThreads::Work work) {
  scan.out = true;
  scan.since = system_clock().now().boot;
  scan.reported = false;
  scans_.run(lane_of(scan, own), std::move(work));
}

void FileWatch::came_back(Scan& scan, Inotify::Owner own, std::uint64_t device) {
  if (scan.reported) {  // it answers: the next hang is reported again
    hangs_reported_.erase(lane_of(scan, own));
    if (device != 0) hangs_reported_.erase({ScanThreads::LaneKind::Device, device});
    threads_troubled_ = false;
  }
  scan.out = false;
  scan.device = device;
}

// --- checkpoints ---------------------------------------------------------------------------------

void FileWatch::scan_saves(const RunPtr& run, BootTime now) {
  run->scan_due = false;
  run->scan_sure_at = now + kScanSure;
  if (run->last_scan == WatchedRun::LastScan::Due) run->last_scan = WatchedRun::LastScan::Out;
  // The work owns all that it touches. It only passes `this` on to the watch thread; a closed inbox
  // drops the task that would use it.
  send(run->saves, run->owner + 1,
       [this, inbox = inbox_, weak = std::weak_ptr(run), dir = run->checkpoints->save_dir(),
        instance = inotify_.handle(), view = options_.view, device = options_.device_of]() mutable {
         const BootTime begun = system_clock().now().boot;
         const std::shared_ptr<const engine::FileView> files =
             view ? view() : std::make_shared<const DiskView>();
         SavesSeen seen;
         seen.device = device ? device(dir.path) : device_of(dir.path);
         seen.network = is_network_file_system(dir.path);
         seen.found = dir.scan(*files);
         seen.unknown = dir.unknown(*files, seen.found);
         seen.dirs = Inotify::ask(instance, dir.dirs(*files, seen.found));
         seen.took = system_clock().now().boot - begun;
         inbox->post([this, weak = std::move(weak), seen = std::move(seen)]() mutable {
           const RunPtr still = weak.lock();
           if (still && owners_.contains(still->owner)) return saves_seen(still, std::move(seen));
           inotify_.refuse(seen.dirs);
         });
       });
}

void FileWatch::saves_seen(const RunPtr& run, SavesSeen seen) {
  const BootTime now = system_clock().now().boot;
  came_back(run->saves, run->owner + 1, seen.device);
  run->blind = seen.network;
  run->scan_sure_at = now + (run->blind ? options_.blind_scan : kScanSure);
  std::set<std::string> dirs;
  for (const Inotify::Asked& asked : seen.dirs) dirs.insert(asked.dir);
  inotify_.keep(run->owner + 1, dirs);
  bool all_watched = true;
  bool new_dir = false;
  for (const Inotify::Asked& asked : seen.dirs) {
    const Inotify::Watching watched = inotify_.took(asked, run->owner + 1);
    all_watched =
        all_watched && (watched == Inotify::Watching::New || watched == Inotify::Watching::Already);
    new_dir = new_dir || watched == Inotify::Watching::New;
  }
  // Only another scan sees changes between this scan and the start of the directory's watch.
  if (new_dir) run->scan_due = true;
  if (!all_watched) run->scan_sure_at = now + options_.blind_scan;
  // Scans take at most a tenth of the time of a slow file system.
  run->scan_at = now + std::max<Duration>(kScanApart, 10 * seen.took);
  bool news = false;
  {
    const std::scoped_lock lock(mutex_);
    news = run->checkpoints->accept(std::move(seen.found), ++mark_);
    run->checkpoints->accept_unknown(std::move(seen.unknown), now,
                                     run->last_scan == WatchedRun::LastScan::Out);
  }
  if (news && callbacks_.on_shard_finished)
    tell(run, [callback = callbacks_.on_shard_finished, key = run->key] { callback(key); });
  if (run->last_scan == WatchedRun::LastScan::Out) report_last_scan(run);
  // While a sweep waits, the cost of a slow file system does not matter.
  if (run->last_scan == WatchedRun::LastScan::Due) run->scan_at = now;
}

void FileWatch::last_scan_due(const RunPtr& run) {
  run->last_scan = WatchedRun::LastScan::Due;
  if (!run->checkpoints) return report_last_scan(run);
  run->last_scan_until = system_clock().now().boot + options_.last_scan;
  run->scan_due = true;
  run->scan_at = {};
}

void FileWatch::report_last_scan(const RunPtr& run) {
  run->last_scan = WatchedRun::LastScan::Reported;
  if (callbacks_.on_last_scan)
    tell(run, [callback = callbacks_.on_last_scan, key = run->key] { callback(key); });
}

// --- success files -------------------------------------------------------------------------------

// A rank that ends during a scan waits for the next one: it may have written the file after the
// scan.
void FileWatch::check_success(const RunPtr& run) {
  if (run->success.out) return;
  run->success_out = std::exchange(run->success_due, {});
  // Files of the ranks that wait. If none waits, the first file, which shows the file system.
  std::vector<std::string> paths;
  for (const auto& [rank, answer] : run->success_out)
    paths.push_back(run->success_file(rank.value));
  if (paths.empty()) paths.push_back(run->any_success_file());
  send(run->success, run->owner,
       [this, inbox = inbox_, weak = std::weak_ptr(run), paths = std::move(paths),
        there = options_.file_there, device = options_.device_of]() mutable {
         const std::uint64_t on = device ? device(paths.front()) : device_of(paths.front());
         std::vector<bool> found;
         for (const std::string& path : paths)
           found.push_back(there ? there(path) : is_there(path));
         inbox->post([this, weak = std::move(weak), found = std::move(found), on] {
           const RunPtr still = weak.lock();
           if (still && owners_.contains(still->owner)) success_seen(still, found, on);
         });
       });
}

void FileWatch::success_seen(const RunPtr& run, const std::vector<bool>& there,
                             std::uint64_t device) {
  came_back(run->success, run->owner, device);
  WatchedRun::Ends ended = std::exchange(run->success_out, {});
  for (std::size_t i = 0; i < ended.size(); ++i) {
    ended[i].second.success_seen = there[i];
    tell_rank_end(run, ended[i].first, std::move(ended[i].second));
  }
  if (!run->success_due.empty()) check_success(run);
}

// --- scans that hang ----------------------------------------------------------------------------

BootTime FileWatch::scans_until() {
  BootTime until = BootTime::max();
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;
    for (const Scan* scan : {&run->saves, &run->success}) {
      if (scan->out && !scan->reported) until = std::min(until, scan->since + options_.hang_after);
    }
    for (const WatchedRank* log : run->logs) {
      const ScriptSource* const source = log->source.get();
      if (source == nullptr || source->over) continue;
      if (source->scan.out && !source->scan.reported)
        until = std::min(until, source->scan.since + options_.hang_after);
      if (source->over_by != BootTime{}) until = std::min(until, source->over_by);
    }
    if (run->last_scan == WatchedRun::LastScan::Due || run->last_scan == WatchedRun::LastScan::Out)
      until = std::min(until, run->last_scan_until);
  }
  return until;
}

void FileWatch::check_scans(BootTime now) {
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;
    if (run->checkpoints)
      check_scan(*run, run->saves, run->owner + 1, now, "looking for checkpoints in",
                 run->checkpoints->save_dir().path);
    check_scan(*run, run->success, run->owner, now, "looking for success file",
               run->any_success_file());
    check_script_logs(run, now);
    const bool waits =
        run->last_scan == WatchedRun::LastScan::Due || run->last_scan == WatchedRun::LastScan::Out;
    if (!waits || now < run->last_scan_until) continue;
    say(fmt::format(
        "looking once more for checkpoints of job '{}' attempt {} before its sweep is reported: no "
        "answer from '{}' for {} ms; what was saved last is reported when it answers",
        run->key.first.str(), run->key.second.value, run->checkpoints->save_dir().path,
        options_.last_scan / std::chrono::milliseconds(1)));
    report_last_scan(run);
  }
}

void FileWatch::check_scan(const WatchedRun& run, Scan& scan, Inotify::Owner own, BootTime now,
                           const char* doing, const std::string& path) {
  if (!scan.out || scan.reported || now < scan.since + options_.hang_after) return;
  const ScanThreads::Lane lane = lane_of(scan, own);
  const bool begun = scans_.at_work(lane);
  const std::string why = begun ? std::string() : scans_.why_waiting();
  if (!begun && why.empty()) {
    scan.since = now;
    return;
  }
  scan.reported = true;
  const std::string what = fmt::format("{} '{}' for job '{}' attempt {}", doing, path,
                                       run.key.first.str(), run.key.second.value);
  const auto waited = options_.hang_after / std::chrono::milliseconds(1);
  if (!begun) {
    if (std::exchange(threads_troubled_, true)) return;
    say(fmt::format(
        "{}: not begun for {} ms: {}; it and others wait their turn, logs and progress go on", what,
        waited, why));
    return;
  }
  if (!hangs_reported_.insert(lane).second) return;
  say(
      fmt::format("{}: no answer for {} ms; runs of that file system wait for it, all else goes "
                  "on; is its server there?",
                  what, waited));
}

}  // namespace muster::agent
