// WatchThread is the state of the watch thread: the watched runs and what their watchers use.
// FileWatch (file_watch.h) starts the thread, which makes this object and destroys it. Other
// threads reach it only by tasks of the inbox.
//
// The thread works in passes. A pass runs when something has changed, when a watcher is due, and
// when a task has come; WatchOptions::coalesce is between two passes. Once in
// WatchOptions::blind_scan all watchers poll, room is kept on the disk, and an inotify instance and
// scan threads that were refused are tried again. Without inotify only logs and their copies are
// read more often (WatchOptions::unnotified_scan); the watchers time that themselves.
#pragma once

#include <map>
#include <memory>

#include "agent/logs/inbox.h"
#include "agent/logs/room.h"
#include "agent/logs/run_watch.h"
#include "agent/logs/watch_tools.h"

namespace muster::agent {

class WatchThread {
 public:
  WatchThread(const WatchOptions& options, WatchReports& reports, std::shared_ptr<Inbox> inbox);

  // Works until the inbox is closed.
  void work();

  // Tasks.
  void begin(RunParts parts);
  void end(const RunKey& run) { runs_.erase(run); }
  // Null: the run is not watched any more.
  [[nodiscard]] RunWatch* find(const RunKey& run);
  [[nodiscard]] WatchTools& tools() { return tools_; }
  // Runs the tasks that have come. Returns false if the inbox is closed.
  bool take_tasks(bool& any);

 private:
  bool pass(BootTime now);
  [[nodiscard]] BootTime next_due() const;
  // True: inotify has reported something.
  bool wait(BootTime until, bool listen);
  void poll(const Now& now);
  void keep_room(BootTime now);

  WatchTools tools_;
  RoomKeeper room_;
  std::map<RunKey, std::unique_ptr<RunWatch>> runs_;  // last: watchers give back what they use
};

}  // namespace muster::agent
