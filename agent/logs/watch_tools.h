// WatchTools is what watchers use on the watch thread: the agent's inotify instance, the scan
// threads, a buffer for reading, and the way to report. WatchThread (watch_thread.h) owns it. No
// other thread can reach it: results of scan threads come through the inbox, as tasks that get the
// WatchThread as their argument.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "agent/logs/changed_files.h"
#include "agent/logs/inbox.h"
#include "agent/logs/scans.h"
#include "agent/logs/watch.h"
#include "agent/logs/watch_reports.h"

namespace muster::agent {

struct WatchTools {
  WatchTools(const WatchOptions& with, WatchReports& to, std::shared_ptr<Inbox> tasks)
      : options(with),
        reports(to),
        inbox(std::move(tasks)),
        changed_files(options, reports),
        scans(options.scan_threads, options.hang_after, reports),
        buffer(256 << 10) {}

  const WatchOptions& options;
  WatchReports& reports;
  const std::shared_ptr<Inbox> inbox;
  ChangedFiles changed_files;
  Scans scans;
  std::vector<char> buffer;
};

}  // namespace muster::agent
