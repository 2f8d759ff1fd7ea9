// WatchReports passes on what the watch has found: callbacks go to the agent's loop, and new bytes
// wake the log link. FileWatch owns it. Any thread may call it. No errors.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "agent/logs/published_run.h"
#include "agent/logs/watch.h"
#include "common/base/error.h"
#include "common/base/mutex.h"

namespace muster::agent {

class WatchReports {
 public:
  WatchReports(Watch::Post post, WatchCallbacks callbacks)
      : post_(std::move(post)), callbacks_(std::move(callbacks)) {}

  // Reports of a run; dropped if the run was removed.
  void first_step(const PublishedRun& run, std::int64_t step) const;
  void rank_end(const PublishedRun& run, RankNo rank, RankEnd answer) const;
  void shard_finished(const PublishedRun& run) const;
  void last_scan(const PublishedRun& run) const;
  void trouble(const PublishedRun& run, const Error& error) const;
  // One line for the agent's log.
  void trouble(std::string text) const;

  // Calls the function that was set last.
  void bytes_moved() MUSTER_EXCLUDES(wake_mutex_);
  // After it has returned, no call of the function before is running.
  void on_bytes(std::function<void()> wake) MUSTER_EXCLUDES(wake_mutex_);

 private:
  void post(const PublishedRun& run, std::function<void()> closure) const;

  const Watch::Post post_;
  const WatchCallbacks callbacks_;
  Mutex wake_mutex_;  // locked while `wake_` runs, so that on_bytes() waits for its end
  std::function<void()> wake_ MUSTER_GUARDED_BY(wake_mutex_);
};

}  // namespace muster::agent
