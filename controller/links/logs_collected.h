// What the log receivers and the log store need to know of jobs, and what the core needs to know of
// logs:
//   known()       whether a job's logs are wanted at all
//   on_complete   every log byte of one node's part is on the controller's disk:
//                 ReportLogsCollected, which lets the node forget the run directory
//   finished jobs are marked in the store, oldest first: the quota takes theirs first
//   forgotten jobs (TombstoneDropped) are removed from the store
// Looks over everything once at start, for what an earlier life did not get to say or to remove.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "common/async/loop.h"
#include "controller/logs/log_store.h"
#include "controller/shell/shell.h"

namespace muster::controller {

class LogsCollected {
 public:
  LogsCollected(Shell& shell, logs::LogStore& store, async::Loop& work)
      : shell_(shell), store_(store), work_(work) {}

  // of Shell::start(), before anything is served
  void start(const core::Ledger& ledger);
  [[nodiscard]] bool known(const JobId& job) const;                    // any thread
  void on_complete(const JobId& job, AttemptNo attempt, RankNo rank);  // any thread
  void on_release(std::span<const journal::Row> rows);                 // strand

 private:
  struct Part {
    JobId job;
    AttemptNo attempt;
    NodeName node;
    RankNo first;
    std::uint32_t count = 0;
  };
  void check(const Part& part);  // work loop, as these
  void remove(const JobId& job);
  void remove_forgotten(WallTime now);

  Shell& shell_;
  logs::LogStore& store_;
  async::Loop& work_;
  mutable std::mutex mutex_;  // guards known_
  std::unordered_set<JobId> known_;
  // Work loop only: how many ranks are known complete, so that a part of n ranks costs n looks at
  // the store, not n * n.
  std::map<std::tuple<JobId, AttemptNo, NodeName>, std::uint32_t> complete_below_;
};

}  // namespace muster::controller
