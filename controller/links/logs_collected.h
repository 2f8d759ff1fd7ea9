// Connects jobs and logs: it reports jobs to the log receiver and the log store, and collected logs
// to the shell. main() of the controller owns it. It runs on the shell's strand and on the work
// loop; known(), is_of() and on_complete() are called on any thread.
//
//   known()        whether a job's logs are wanted at all
//   is_of()        whether a log, or a point of its series, is a node's to send
//   on_complete    every log byte of one node's part is on the controller's disk: sends
//                  ReportLogsCollected, so that the node may forget the run directory
//   finished jobs  are marked in the store, oldest first: the quota removes their logs first
//   forgotten jobs (TombstoneDropped) are removed from the store
//
// start() checks everything once, for what an earlier incarnation did not report or remove in time.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "common/async/loop.h"
#include "common/base/mutex.h"
#include "controller/logs/log_store.h"
#include "controller/shell/shell.h"

namespace muster::controller {

class LogsCollected {
 public:
  LogsCollected(Shell& shell, logs::LogStore& store, async::Loop& work)
      : shell_(shell), store_(store), work_(work) {}

  // Called with the ledger of Shell::start(), before anything is served.
  void start(const core::Ledger& ledger);
  [[nodiscard]] bool known(const JobId& job) const;  // any thread
  // Whether a part of the log's attempt is on this node, with the log's rank, and pinned to this
  // state directory: a machine that has replaced another one under its name has none of its logs.
  // Of logs of no rank each part has a bound, so that a node cannot make files without end; the
  // answer counts them.
  //
  // A job in the archive has no parts any more, so nobody sends logs of it. It went there when its
  // logs had come, or could not come because their nodes were dead. Such a node that returns is
  // ordered to forget the run. Any thread.
  [[nodiscard]] bool is_of(const logs::LogKey& key, const NodeName& node,
                           const InstanceId& instance);
  // Whether other nodes have the log's attempt, and this one has no part of it. Any thread.
  [[nodiscard]] bool is_others(const logs::LogKey& key, const NodeName& node) const;
  void on_complete(const JobId& job, AttemptNo attempt, RankNo rank);  // any thread
  void on_release(std::span<const journal::Row> rows);                 // strand

 private:
  struct Part {
    JobId job;
    AttemptNo attempt;
    NodeName node;
    InstanceId instance;
    RankNo first;
    std::uint32_t count = 0;
  };
  struct Open {
    Part part;
    std::set<std::string> auxiliaries = {};  // the logs of no rank that were accepted
  };
  static Part part_of(const JobId& job, AttemptNo attempt, const core::PlacedNode& placed);
  void check(const Part& part) MUSTER_REQUIRES(work_);
  void remove(const JobId& job) MUSTER_REQUIRES(work_);
  void remove_forgotten(WallTime now) MUSTER_REQUIRES(work_);

  Shell& shell_;
  logs::LogStore& store_;
  async::Loop& work_;
  void add_parts(const JobId& job, AttemptNo attempt, std::span<const core::PlacedNode> nodes)
      MUSTER_REQUIRES(mutex_);
  mutable Mutex mutex_;
  // With the parts of each job's attempts; of a job in the archive, none.
  std::unordered_map<JobId, std::vector<Open>> known_ MUSTER_GUARDED_BY(mutex_);
  // How many ranks are known to be complete, so that a part of n ranks costs n checks of the store,
  // not n * n.
  std::map<std::tuple<JobId, AttemptNo, NodeName>, std::uint32_t> complete_below_
      MUSTER_GUARDED_BY(work_);
};

}  // namespace muster::controller
