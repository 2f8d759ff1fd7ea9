#include "agent/logs/checkpoint_scans.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/launch/disk_view.h"
#include "agent/logs/watch_thread.h"

namespace muster::agent {
namespace {

constexpr Duration kApart = std::chrono::milliseconds(50);
// Where the kernel reports changes, but only of the directories that could be watched.
constexpr Duration kInAnyCase = std::chrono::seconds(10);

}  // namespace

struct CheckpointScans::Seen {
  std::vector<engine::FoundCheckpoint> found;
  std::string unknown;
  std::vector<Inotify::Asked> dirs;
  std::uint64_t device = 0;
  bool network = false;
  Duration took{};
};

bool CheckpointScans::pass(BootTime now) {
  if (now >= latest_ && !scan_.under_way()) scan_.set_due();
  if ((now >= earliest_ || now >= latest_) && scan_.take()) start(now);
  scan_.check(now, "looking for checkpoints in", dir_.path, run_->key);
  if (now < given_up_at_) return false;
  tools_.reports.trouble(fmt::format(
      "looking once more for checkpoints of job '{}' attempt {} before its sweep is reported: no "
      "answer from '{}' for {} ms; what was saved last is reported when it answers",
      run_->key.first.str(), run_->key.second.value, dir_.path,
      tools_.options.last_scan / std::chrono::milliseconds(1)));
  report_last_scan();
  return false;
}

BootTime CheckpointScans::next_due() const {
  const BootTime next_scan = scan_.under_way() ? BootTime::max()
                             : scan_.due()     ? std::min(earliest_, latest_)
                                               : latest_;
  return std::min({next_scan, scan_.next_check(), given_up_at_});
}

void CheckpointScans::swept(BootTime now) {
  last_scan_ = LastScan::Due;
  given_up_at_ = now + tools_.options.last_scan;
  scan_.set_due();
  earliest_ = {};
}

// The work owns all that it touches; a closed inbox drops its result.
void CheckpointScans::start(BootTime now) {
  latest_ = now + kInAnyCase;
  if (last_scan_ == LastScan::Due) last_scan_ = LastScan::UnderWay;
  scan_.send([inbox = tools_.inbox, weak = weak_from_this(), lane = scan_.lane(), dir = dir_,
              reach = reach_,
              instance = tools_.changed_files.inotify().handle(), view = tools_.options.view,
              device = tools_.options.device_of]() mutable {
    const BootTime begun = system_clock().now().boot;
    const InReach in_reach(reach);
    const std::shared_ptr<const engine::FileView> files =
        view ? view() : std::make_shared<const DiskView>(nullptr, &in_reach);
    Seen seen;
    seen.device = device ? device(dir.path) : device_of(dir.path);
    seen.network = is_network_file_system(dir.path);
    seen.found = dir.scan(*files);
    seen.unknown = dir.unknown(*files, seen.found);
    seen.dirs = Inotify::ask(instance, dir.dirs(*files, seen.found));
    seen.took = system_clock().now().boot - begun;
    inbox->post(
        [weak = std::move(weak), lane, seen = std::move(seen)](WatchThread* thread) mutable {
          if (const auto still = weak.lock()) return still->take(std::move(seen));
          thread->tools().scans.answered(lane);
          thread->tools().changed_files.inotify().refuse(seen.dirs);
        });
  });
}

bool CheckpointScans::take_watches(const std::vector<Inotify::Asked>& asked) {
  Inotify& inotify = tools_.changed_files.inotify();
  std::set<std::string> dirs;
  for (const Inotify::Asked& one : asked) dirs.insert(one.dir);
  inotify.keep(listener_.owner(), dirs);
  bool all = true;
  for (const Inotify::Asked& one : asked) {
    const Inotify::Watching watched = inotify.took(one, listener_.owner());
    all = all && (watched == Inotify::Watching::New || watched == Inotify::Watching::Already);
    // Only another scan sees changes between this scan and the start of the directory's watch.
    if (watched == Inotify::Watching::New) scan_.set_due();
  }
  return all;
}

void CheckpointScans::take(Seen seen) {
  const BootTime now = system_clock().now().boot;
  scan_.returned(seen.device);
  const bool reported = take_watches(seen.dirs) && !seen.network;
  latest_ = now + (reported ? kInAnyCase : tools_.options.blind_scan);
  earliest_ = now + std::max<Duration>(kApart, 10 * seen.took);
  latest_ = std::max(latest_, earliest_);
  const bool news = run_->take_checkpoints(std::move(seen.found), std::move(seen.unknown), now,
                                           last_scan_ == LastScan::UnderWay);
  if (news) tools_.reports.shard_finished(*run_);
  if (last_scan_ == LastScan::UnderWay) report_last_scan();
  // While a sweep waits, the cost of a slow file system does not matter.
  if (last_scan_ == LastScan::Due) earliest_ = now;
}

void CheckpointScans::report_last_scan() {
  last_scan_ = LastScan::Reported;
  given_up_at_ = BootTime::max();
  tools_.reports.last_scan(*run_);
}

}  // namespace muster::agent
