// What apply() derives from the ledger's facts, so that lookups are cheap. Plain values.
//
// The journal does not hold it. rebuild() makes all of it again from the facts alone; the simulator
// and the scenarios compare the two after every turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"

namespace muster::core {

using AttemptKey = std::pair<JobId, AttemptNo>;

// The attempts that a node is concerned with.
struct NodeParts {
  std::set<AttemptKey> unswept;  // these have orders: Run or Stop
  std::set<AttemptKey> open;     // not swept, or logs not all at the controller
  // By the event that closed the part. The newest kForgetListMax of them get Forget.
  std::set<std::pair<JournalIndex, AttemptKey>> closed;
  friend bool operator==(const NodeParts&, const NodeParts&) = default;
};
inline constexpr std::size_t kForgetListMax = 128;

struct Indexes {
  std::unordered_map<RequestId, JobId> request_ids;  // of jobs and tombstones
  std::unordered_map<std::string, JobId> live_names;
  // Queued jobs by queue_place: first in, first out. A job that returns goes to the front.
  std::map<std::int64_t, JobId> queue;
  // The queued jobs that wait for no other job, by what they require of nodes (queue.h), each line
  // by queue_place. Whether the registered nodes could hold a job is one check for a whole line.
  std::map<std::string, std::map<std::int64_t, JobId>> queue_lines;
  // Which jobs wait for which (predecessors.h). The key is the job that is waited for.
  std::map<JobId, std::set<JobId>> dependents;
  // The keys of `dependents` that have ended or do not exist.
  std::set<JobId> unsettled;
  // Chains (chains.h), of jobs and tombstones: the jobs of each chain in order, by the chain's id,
  // and the newest chain of each name.
  std::map<JobId, std::vector<JobId>> chains;
  std::unordered_map<std::string, JobId> chain_names;
  // All chains, by name.
  std::set<std::pair<std::string, JobId>> chains_named;
  // Reserved until the attempt has ended and the node is swept.
  std::map<NodeName, std::map<std::uint32_t, AttemptKey>> device_holders;
  // (address, master port) -> its attempt, until the attempt has ended and rank 0's node is swept.
  std::map<std::pair<std::string, std::uint16_t>, AttemptKey> ports_reserved;
  // Launching, Running, Draining, Completing: the only jobs that propose() must visit.
  std::set<JobId> live;
  std::set<AttemptKey> lingering;  // ended, but not swept everywhere
  std::map<NodeName, NodeParts> node_parts;
  std::set<NodeName> dead_nodes;
  std::set<std::pair<WallTime, JobId>> archivable;  // final, every part closed; by the end
  std::set<std::pair<WallTime, JobId>> tombstone_ages;
  // Jobs and tombstones whose scripts named a save directory (saved_before.h).
  std::set<JobId> savers;
  friend bool operator==(const Indexes&, const Indexes&) = default;
};

}  // namespace muster::core
