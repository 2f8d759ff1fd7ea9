// ChangedFiles passes the kernel's reports of changed files to the watchers. It owns the agent's
// one inotify instance (inotify.h). WatchTools owns it; only the watch thread uses it.
//
// A watcher that watches directories owns a DirListener, which gives their watches back when it is
// destroyed. Without an instance nothing is reported: watchers then poll. That is reported once,
// and open() tries again, because another program may have ended.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "agent/logs/inotify.h"
#include "agent/logs/watch.h"
#include "agent/logs/watch_reports.h"
#include "agent/logs/watcher.h"
#include "common/base/once_per_cause.h"

namespace muster::agent {

class ChangedFiles {
 public:
  ChangedFiles(const WatchOptions& options, const WatchReports& reports)
      : options_(options), reports_(reports) {}
  // Makes the instance unless there is one.
  void open();
  // Watches a directory of the node's own disk, where every write counts. False: poll it.
  bool watch_writes(const std::string& dir, Inotify::Owner owner);
  // Calls Watcher::changed for each report.
  void pass_on();
  [[nodiscard]] Inotify& inotify() { return inotify_; }

 private:
  friend class DirListener;
  const WatchOptions& options_;
  const WatchReports& reports_;
  Inotify inotify_;
  std::map<Inotify::Owner, Watcher*> listeners_;
  Inotify::Owner last_owner_ = 0;
  OncePerCause no_instance_, no_watch_left_;
};

class DirListener {
 public:
  DirListener(ChangedFiles& files, Watcher& watcher) : files_(files), owner_(++files.last_owner_) {
    files_.listeners_[owner_] = &watcher;
  }
  ~DirListener() {
    files_.inotify_.forget(owner_);
    files_.listeners_.erase(owner_);
  }
  DirListener(const DirListener&) = delete;
  DirListener& operator=(const DirListener&) = delete;
  [[nodiscard]] Inotify::Owner owner() const { return owner_; }

 private:
  ChangedFiles& files_;
  const Inotify::Owner owner_;
};

}  // namespace muster::agent
