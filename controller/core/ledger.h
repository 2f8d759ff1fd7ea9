// The Ledger: durable facts, rebuilt only by folding the journal through apply(). Plain values, owned by the shell's strand; readers on
// that strand only (other strands get copies). Nothing here is visible to anybody before its events are durable.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "controller/core/event.h"
#include "controller/core/job_phase.h"

namespace muster::core {

struct NodeRecord {
  NodeName name;
  InstanceId instance;
  BootId boot_id;
  v1::Inventory inventory;
  std::string version;
  bool dead = false;
  WallTime registered_at{};
};

// One node's part of one attempt.
struct NodePart {
  PlacedNode placed;
  bool started = false;
  std::optional<NodeStartFailed> start_failed;
  bool swept = false;
  std::string swept_reason;
  bool logs_collected = false;
  std::map<RankNo, RankExited> exits;       // of this node's ranks
  std::vector<std::uint64_t> pids;          // by local rank
};

enum class AttemptState : std::uint8_t { Live, Stopping, Ended };

struct AttemptRecord {
  AttemptNo number;
  AttemptState state = AttemptState::Live;
  std::vector<NodePart> parts;              // rank order
  std::uint16_t master_port = 0;
  std::optional<ResumePoint> resume;
  WallTime placed_at{};
  std::optional<WallTime> running_at, first_step_at, broke_at, ended_at, caught_up_at;
  std::optional<WallTime> fault_time;       // by the node's clock
  std::string broke_cause;
  std::optional<std::int64_t> first_step;
  std::optional<Verdict> verdict;
  bool charged = false;
  std::int64_t best_step = -1;
  std::string fence;                        // which rule let the next attempt go on
  bool completed = false;

  [[nodiscard]] std::uint32_t world_size() const;
  [[nodiscard]] NodePart* part(const NodeName& node);
  [[nodiscard]] const NodePart* part(const NodeName& node) const;
};

struct CheckpointRecord {
  AttemptNo attempt;
  std::int64_t step = 0;
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t shards = 0;
  WallTime at{};
  bool set_aside = false;
};

struct JobRecord {
  JobId id;
  RequestId request_id;
  v1::JobSpec spec;                         // immutable
  std::string spec_hash;
  JobPhase phase = JobPhase::Queued;
  WallTime submitted_at{};
  std::optional<WallTime> ended_at;
  bool cancel_requested = false;
  std::string cancel_reason;
  std::vector<AttemptRecord> attempts;      // attempts[i].number == i + 1
  std::vector<CheckpointRecord> checkpoints;  // in order of acceptance
  std::optional<Verdict> verdict;           // final
  std::int64_t best_step = -1;              // over all ended attempts
  std::uint32_t attempts_without_progress = 0;
  JournalIndex last_index;                  // of its last event

  [[nodiscard]] AttemptRecord* current() { return attempts.empty() ? nullptr : &attempts.back(); }
  [[nodiscard]] const AttemptRecord* current() const { return attempts.empty() ? nullptr : &attempts.back(); }
  [[nodiscard]] AttemptRecord* attempt(AttemptNo number);
  [[nodiscard]] const AttemptRecord* attempt(AttemptNo number) const;
};

// What is left of an archived job: enough to keep names, ids and request ids honest.
struct Tombstone {
  JobId id;
  std::string name;
  RequestId request_id;
  JobPhase phase = JobPhase::Succeeded;
  WallTime ended_at{};
};

struct Ledger {
  ClusterId cluster;
  Epoch epoch;
  std::string version;
  JournalIndex index;                       // of the last event folded in
  std::map<NodeName, NodeRecord> nodes;
  std::map<JobId, JobRecord> jobs;          // live ones, and finished ones not archived yet
  std::map<JobId, Tombstone> tombstones;
  // Derived by apply() alone, so that lookups cost nothing: never journaled.
  std::unordered_map<RequestId, JobId> request_ids;             // of jobs and tombstones
  std::unordered_map<std::string, JobId> live_names;
  std::deque<JobId> queue;                  // Queued jobs, first in, first out; a job that comes back goes to the front
  std::map<NodeName, std::map<std::uint32_t, std::pair<JobId, AttemptNo>>> device_holders;  // until swept, or fenced
  std::set<std::pair<NodeName, std::uint16_t>> ports_held;      // master ports of attempts not ended
};

}  // namespace muster::core
