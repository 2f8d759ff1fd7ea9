// Watcher is the interface of one subject that is watched of a run: its logs, its checkpoints, its
// success files and so on. A RunWatch (run_watch.h) owns one Watcher for each subject that its run
// has. Only the watch thread calls it.
//
//   - No method may wait: not for the network, not for a file system that a job chooses. Such work
//     goes to a scan thread (scans.h).
//   - The files of the run directory are on the node's own disk. They may be read here, with a
//     bound for each call.
//   - When a rank ends, its end passes through the run's watchers in their order. Each adds what it
//     knows, and the last step reports the answer (explain()).
#pragma once

#include <memory>
#include <string_view>

#include "agent/logs/log_file.h"
#include "agent/logs/watch.h"
#include "common/base/ids.h"
#include "common/base/time.h"

namespace muster::agent {

// The answer for a rank that has ended, while it passes through the watchers.
struct RankEnding {
  RankNo rank;
  bool failed = false;
  RankEnd answer;
  int quality = 0;  // of answer.evidence: engine::Evidence::rank, 0: there is none
  std::shared_ptr<LogFile> log;
};

class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  // Does what is due: reads what has changed, starts scans, reports those that hang. True: more is
  // due at once; then other runs get their turn before the next call.
  virtual bool pass(BootTime now) = 0;
  // The time at which pass() must run although nothing has changed. After that call it is later.
  [[nodiscard]] virtual BootTime next_due() const { return BootTime::max(); }
  // A file of a directory that this watcher watches has changed (changed_files.h). Empty: anything
  // may have changed.
  virtual void changed([[maybe_unused]] std::string_view name) {}
  // Runs every WatchOptions::blind_scan, for files whose changes nothing reports. A watcher that
  // must see them sooner has a time of its own (next_due).
  virtual void poll([[maybe_unused]] const Now& now) {}
  // The rank's process is gone.
  virtual void ended([[maybe_unused]] RankNo rank, [[maybe_unused]] bool failed) {}
  // No process of the run is left.
  virtual void swept([[maybe_unused]] BootTime now) {}
  // True: the answer for a rank that has ended must wait for this watcher.
  [[nodiscard]] virtual bool end_waits() const { return false; }
  // Adds what is known of the rank's end. False: this watcher has moved the ending away, and passes
  // it on to RankEndings::report later.
  [[nodiscard]] virtual bool explain([[maybe_unused]] RankEnding& ending) { return true; }
  // The disk is nearly full: gives up what can be given up before a byte of a log.
  virtual void free_room() {}
};

}  // namespace muster::agent
