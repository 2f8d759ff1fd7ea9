#include "agent/logs/success_files.h"

#include <algorithm>

#include "agent/launch/disk_view.h"
#include "agent/logs/watch_thread.h"

namespace muster::agent {

const std::string& SuccessFiles::Paths::of(RankNo rank) const {
  const auto file = own.find(rank.value);
  return file == own.end() ? of_run : file->second;
}

const std::string& SuccessFiles::Paths::any() const {
  const auto file = std::ranges::find_if(own, [](const auto& one) { return !one.second.empty(); });
  return file == own.end() ? of_run : file->second;
}

bool SuccessFiles::pass(BootTime now) {
  if (scan_.take()) start();
  scan_.check(now, "looking for success file", paths_.any(), run_);
  return false;
}

bool SuccessFiles::explain(RankEnding& ending) {
  if (ending.failed || ending.answer.success_seen || paths_.of(ending.rank).empty()) return true;
  waiting_.push_back(std::move(ending));
  if (scan_.want()) start();
  return false;
}

void SuccessFiles::start() {
  checked_ = std::exchange(waiting_, {});
  // Files of the ranks that wait. If none waits, the first file, which shows the file system.
  std::vector<std::string> files;
  for (const RankEnding& ending : checked_) files.push_back(paths_.of(ending.rank));
  if (files.empty()) files.push_back(paths_.any());
  scan_.send([inbox = tools_.inbox, weak = weak_from_this(), lane = scan_.lane(),
              files = std::move(files), there = tools_.options.file_there, reach = reach_,
              device = tools_.options.device_of]() mutable {
    const InReach in_reach(reach);
    const std::uint64_t on = device ? device(files.front()) : device_of(files.front());
    std::vector<bool> found;
    for (const std::string& file : files)
      found.push_back(there ? there(file) : in_reach.exists(file));
    inbox->post([weak = std::move(weak), lane, found = std::move(found), on](WatchThread* thread) {
      if (const auto still = weak.lock()) return still->take(found, on);
      thread->tools().scans.answered(lane);
    });
  });
}

void SuccessFiles::take(const std::vector<bool>& there, std::uint64_t device) {
  scan_.returned(device);
  std::vector<RankEnding> checked = std::exchange(checked_, {});
  for (std::size_t i = 0; i < checked.size(); ++i) {
    checked[i].answer.success_seen = there[i];
    endings_.report(checked[i]);
  }
  if (scan_.take()) start();
}

}  // namespace muster::agent
