// Looks that may hang: each is work of one lane (look_threads.h), brings a value back through the
// inbox, and is booked here, on the watch's thread.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/watch/disk_view.h"
#include "agent/watch/file_watch.h"

namespace muster::agent {
namespace {

constexpr Duration kScanApart = std::chrono::milliseconds(50);
// where the kernel does tell, but only of the directories that could be watched
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

// As long as its file system is not known a look has a lane of its own: `own` is a number that no
// other one has.
LookThreads::Lane FileWatch::lane_of(const Look& look, Inotify::Owner own) {
  return look.device != 0 ? LookThreads::Lane{LookThreads::LaneKind::Device, look.device}
                          : LookThreads::Lane{LookThreads::LaneKind::Run, own};
}

void FileWatch::send(Look& look, Inotify::Owner own, LookThreads::Work work) {
  look.out = true;
  look.since = system_clock().now().boot;
  look.told = false;
  looks_.run(lane_of(look, own), std::move(work));
}

void FileWatch::came_back(Look& look, Inotify::Owner own, std::uint64_t device) {
  if (look.told) {  // it answers: the next time that it does not is news
    hangs_told_.erase(lane_of(look, own));
    if (device != 0) hangs_told_.erase({LookThreads::LaneKind::Device, device});
    threads_troubled_ = false;
  }
  look.out = false;
  look.device = device;
}

// --- checkpoints ---------------------------------------------------------------------------------

void FileWatch::look_at_saves(const RunPtr& run, BootTime now) {
  run->scan_due = false;
  run->scan_sure_at = now + kScanSure;
  if (run->last_look == WatchedRun::LastLook::Due) run->last_look = WatchedRun::LastLook::Out;
  // Owns all that it touches: `this` is only handed on to the watch's thread, which an inbox that
  // is closed does not reach.
  send(run->saves, run->owner + 1,
       [this, inbox = inbox_, weak = std::weak_ptr(run), dir = run->checkpoints->save_dir(),
        instance = inotify_.handle(), view = options_.view, device = options_.device_of]() mutable {
         const BootTime begun = system_clock().now().boot;
         const std::shared_ptr<const engine::FileView> files =
             view ? view() : std::make_shared<const DiskView>();
         SavesSeen seen;
         seen.device = device ? device(dir.path) : device_of(dir.path);
         seen.network = is_network_file_system(dir.path);
         seen.found = dir.look(*files);
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
  // What happened in a directory between the look and its watch is only seen by looking again.
  if (new_dir) run->scan_due = true;
  if (!all_watched) run->scan_sure_at = now + options_.blind_scan;
  // A slow file system is not looked at more than a tenth of the time.
  run->scan_at = now + std::max<Duration>(kScanApart, 10 * seen.took);
  bool news = false;
  {
    const std::scoped_lock lock(mutex_);
    news = run->checkpoints->accept(std::move(seen.found), ++mark_);
    run->checkpoints->accept_unknown(std::move(seen.unknown), now,
                                     run->last_look == WatchedRun::LastLook::Out);
  }
  if (news && callbacks_.on_shard_finished)
    tell(run, [told = callbacks_.on_shard_finished, key = run->key] { told(key); });
  if (run->last_look == WatchedRun::LastLook::Out) tell_last_look(run);
  // Nobody asks what a slow file system cost when a sweep waits.
  if (run->last_look == WatchedRun::LastLook::Due) run->scan_at = now;
}

void FileWatch::last_look_due(const RunPtr& run) {
  run->last_look = WatchedRun::LastLook::Due;
  if (!run->checkpoints) return tell_last_look(run);
  run->last_look_until = system_clock().now().boot + options_.last_look;
  run->scan_due = true;
  run->scan_at = {};
}

void FileWatch::tell_last_look(const RunPtr& run) {
  run->last_look = WatchedRun::LastLook::Told;
  if (callbacks_.on_last_look)
    tell(run, [told = callbacks_.on_last_look, key = run->key] { told(key); });
}

// --- success files -------------------------------------------------------------------------------

// A rank that ends while a look is out waits for the next one: it may have written the file after
// the look.
void FileWatch::look_for_success(const RunPtr& run) {
  if (run->success.out) return;
  run->success_out = std::exchange(run->success_due, {});
  // of those that wait; of nobody, the first: it tells the file system
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
  if (!run->success_due.empty()) look_for_success(run);
}

// --- those that do not come back -----------------------------------------------------------------

BootTime FileWatch::looks_until() {
  BootTime until = BootTime::max();
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;
    for (const Look* look : {&run->saves, &run->success}) {
      if (look->out && !look->told) until = std::min(until, look->since + options_.hang_after);
    }
    for (const WatchedRank* log : run->logs) {
      const ScriptSource* const source = log->source.get();
      if (source == nullptr || source->over) continue;
      if (source->look.out && !source->look.told)
        until = std::min(until, source->look.since + options_.hang_after);
      if (source->over_by != BootTime{}) until = std::min(until, source->over_by);
    }
    if (run->last_look == WatchedRun::LastLook::Due || run->last_look == WatchedRun::LastLook::Out)
      until = std::min(until, run->last_look_until);
  }
  return until;
}

void FileWatch::mind_looks(BootTime now) {
  for (const RunPtr& run : all_runs()) {
    if (!run->begun) continue;
    if (run->checkpoints)
      mind(*run, run->saves, run->owner + 1, now, "looking for checkpoints in",
           run->checkpoints->save_dir().path);
    mind(*run, run->success, run->owner, now, "looking for success file", run->any_success_file());
    mind_script_logs(run, now);
    const bool waits =
        run->last_look == WatchedRun::LastLook::Due || run->last_look == WatchedRun::LastLook::Out;
    if (!waits || now < run->last_look_until) continue;
    say(
        fmt::format("looking once more for checkpoints of job '{}' attempt {} before its sweep is "
                    "told: no answer from '{}' for {} ms; what was saved last is "
                    "told when it answers",
                    run->key.first.str(), run->key.second.value, run->checkpoints->save_dir().path,
                    options_.last_look / std::chrono::milliseconds(1)));
    tell_last_look(run);
  }
}

void FileWatch::mind(const WatchedRun& run, Look& look, Inotify::Owner own, BootTime now,
                     const char* doing, const std::string& path) {
  if (!look.out || look.told || now < look.since + options_.hang_after) return;
  const LookThreads::Lane lane = lane_of(look, own);
  const bool begun = looks_.at_work(lane);
  const std::string why = begun ? std::string() : looks_.why_waiting();
  if (!begun && why.empty()) {
    look.since = now;
    return;
  }
  look.told = true;
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
  if (!hangs_told_.insert(lane).second) return;
  say(
      fmt::format("{}: no answer for {} ms; runs of that file system wait for it, all else goes "
                  "on; is its server there?",
                  what, waited));
}

}  // namespace muster::agent
