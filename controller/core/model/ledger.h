// The Ledger holds the durable facts as plain values, rebuilt only by folding the journal through
// apply(). The Shell owns it. Only the shell's strand uses it; other strands get copies.
//
// Nothing here is visible to others before its events are durable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/core/model/access_records.h"
#include "controller/core/model/attempt_state.h"
#include "controller/core/model/event.h"
#include "controller/core/model/indexes.h"
#include "controller/core/model/job_phase.h"

namespace muster::core {

struct OwnTable;  // table_hosts.h

struct NodeRecord {
  NodeName name;
  InstanceId instance;
  BootId boot_id;
  v1::Inventory inventory;
  std::string version;
  bool dead = false;
  WallTime registered_at{};
  std::optional<NodeDrained> drain = {};           // not set: nobody drains it
  std::map<std::string, std::string> labels = {};  // that operators have set
};

// The label that an operator has set, else the one that the agent reports. Nullptr: there is none.
const std::string* label_of(const NodeRecord& node, const std::string& key);

inline constexpr std::size_t kAuxiliariesMax = 16;  // of a part; no engine has more than two
inline constexpr std::size_t kAuxiliaryNameMax = 64;

// One node's part of one attempt.
struct NodePart {
  PlacedNode placed;
  bool started = false;
  std::optional<NodeStartFailed> start_failed;
  bool swept = false;
  std::optional<SweptWhy> swept_why;  // not set: it is not swept, or it is idle
  bool logs_collected = false;
  JournalIndex closed_index;           // the event that closed it; 0: it is open
  std::map<RankNo, RankExited> exits;  // of this node's ranks
  // Processes that ended badly before a stop was requested; at most kAuxiliariesMax.
  std::map<std::string, AuxiliaryExited> auxiliaries;
  std::vector<std::uint64_t> pids;      // by local rank
  std::optional<Duration> clock_ahead;  // as in NodeClockSkewed; not set: within a minute
  v1::NodeResolved resolved;            // what the node added to the plan
  bool uploads = false;                 // it has outputs to upload, and nothing has ended that yet
  std::optional<OutputsUploaded> outputs;
  bool uploads_logs = false;  // the same for logs
  std::optional<OutputsUploaded> logs_end;
  std::int64_t sent_step = -1;  // the newest checkpoint whose files it has uploaded, or could not
  std::string sent_sums;        // of that, as in OutputsUploaded

  // A node of a `launch.per: once` job that lends its devices and runs nothing. It gets no orders,
  // and it is free when the other nodes are swept.
  [[nodiscard]] bool idle() const { return placed.rank_count == 0; }
  [[nodiscard]] bool closed() const { return swept && logs_collected && !uploads && !uploads_logs; }
  // Ranks of it have run there, as far as the node has said.
  [[nodiscard]] bool ran() const {
    return started || std::ranges::any_of(exits, [](const auto& one) { return !one.second.lost; });
  }
  // The node had a run directory of it.
  [[nodiscard]] bool was_there() const {
    return started || start_failed || swept || !exits.empty();
  }
};

// It ended with status 0, and muster had not asked it to stop.
inline bool ended_well(const RankExited& exit) {
  return exit.code == 0 && exit.signal == 0 && !exit.lost && !exit.oom && !exit.stop_requested;
}

struct AttemptRecord {
  AttemptNo number;
  AttemptState state = AttemptState::Live;
  std::vector<NodePart> parts;  // rank order
  std::uint16_t master_port = 0;
  std::optional<ResumePoint> resume;
  std::string table_sha256;        // of the rank table; empty: no table
  std::vector<SavedBefore> saved;  // as in AttemptPlaced
  std::vector<PinnedSecret> secrets;
  std::vector<PinnedInput> inputs;
  std::optional<PinnedOutput> output;       // not set: outputs go nowhere
  std::optional<PinnedOutput> logs_output;  // not set: logs go to no store
  // Of its checkpoints, the newest one whose files a node has uploaded, or could not.
  struct Sending {
    std::int64_t step = -1;
    std::size_t nodes = 0;  // that have
    bool failed = false;    // on one of them
  };
  Sending sending;
  std::int64_t sealed_step = -1;  // the newest whose upload has ended on all nodes
  WallTime placed_at{};
  std::optional<WallTime> running_at, first_step_at, broke_at, ended_at, caught_up_at;
  std::optional<WallTime> fault_time;   // as in AttemptBroke
  std::optional<WallTime> detected_at;  // when the first message about the fault arrived
  // When the last rank's exit arrived. From then on the evidence for the verdict is complete.
  std::optional<WallTime> exits_known_at;
  std::string broke_cause;
  std::optional<std::int64_t> first_step;
  std::optional<ScriptLaunched> script_launch;
  std::optional<Verdict> verdict;
  bool charged = false;
  std::int64_t best_step = -1;
  std::map<Note, AttemptNoted> notes;
  std::string fence;            // the rule that let the next attempt start
  bool cancelled = false;       // broken by a cancel, not by a fault
  NodeName drained;             // as in AttemptBroke
  std::string differing_input;  // as in AttemptBroke
  // apply() alone computes these, so that a fact of a gang with thousands of ranks needs no loop
  // over it.
  std::map<NodeName, std::size_t> part_index;
  std::size_t parts_started = 0, parts_swept = 0;
  std::size_t uploaders = 0;  // parts that upload, or did
  // One of these uploads no more: what the others send of a further checkpoint is not all of it.
  bool uploader_gone = false;
  std::int64_t best_saved = -1;  // highest step of its checkpoints
  std::uint32_t ranks_well = 0, ranks_exited = 0;

  [[nodiscard]] std::uint32_t world_size() const;
  [[nodiscard]] bool all_swept() const { return parts_swept == parts.size(); }
  // When the verdict was settled: at the last rank's exit, or at the end of the attempt without it.
  // Nothing: not yet, or the attempt did not break.
  [[nodiscard]] std::optional<WallTime> decided_at() const;
  [[nodiscard]] NodePart* part(const NodeName& node);
  [[nodiscard]] const NodePart* part(const NodeName& node) const;
  // The part that runs the rank; nullptr: none.
  [[nodiscard]] const NodePart* part_of(RankNo rank) const;
};

inline constexpr std::size_t kCheckpointsMax = 1'024;  // of a job

struct CheckpointRecord {
  AttemptNo attempt;
  std::int64_t step = 0;
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t shards = 0;
  WallTime at{};
  bool quarantined = false;
  bool weights_alone = false;  // the reason why it is quarantined
  bool uploaded = false;       // it is whole in the store of outputs.to
};

// What all nodes of the latest attempt in which they agreed have of an input.
struct InputPin {
  std::string contents_sha256;  // as in InputState
  bool anew = false;            // the next attempt lists the store: nodes have differed since
};

struct JobRecord {
  JobId id;
  RequestId request_id;
  v1::JobSpec spec;           // immutable
  v1::ResolvedSpec resolved;  // immutable: what the submission worked out from the spec
  std::string spec_hash;
  std::string owner;  // immutable; empty: the user who runs the controller
  JobPhase phase = JobPhase::Queued;
  WallTime submitted_at{};
  std::optional<WallTime> ended_at;
  bool cancel_requested = false;
  std::string cancel_reason;
  std::string cancelled_by;  // as in CancelRequested
  // By number, from 1. Without gaps, unless the journal's end was lost (lost_end.h).
  std::vector<AttemptRecord> attempts;
  // At most this many attempts were placed after the last one here, in a lost end of the journal
  // (lost_end.h). 0: none was lost.
  std::uint32_t attempts_lost = 0;
  // In order of acceptance: the latest kCheckpointsMax, and always the one to resume from.
  std::vector<CheckpointRecord> checkpoints;
  std::optional<Verdict> verdict;  // final
  std::int64_t best_step = -1;     // over all ended attempts
  std::uint32_t attempts_without_progress = 0;
  JournalIndex last_index;       // of its last event
  std::int64_t queue_place = 0;  // while queued: the smaller place is ahead
  // The checkpoint that spec.start names, once it is known. It is known from the submission on, or
  // from the end of the stage that spec.start names.
  std::optional<ResumePoint> start;
  // Where the files of the jobs are that it waited for (checkpoint.storage: local).
  std::map<JobId, OwnedShards> owned;
  // By the names of its inputs in stores.
  std::map<std::string, InputPin> input_pins;
  // While queued: the jobs of resolved.after that have not succeeded yet.
  std::set<JobId> waits_for;
  // Derived: the parts of all attempts that are not swept, or whose logs are not all at the
  // controller.
  std::size_t open_parts = 0;
  std::shared_ptr<const OwnTable> own_table;  // derived: the spec's resources.rank_table, read once

  [[nodiscard]] AttemptRecord* current() { return attempts.empty() ? nullptr : &attempts.back(); }
  [[nodiscard]] const AttemptRecord* current() const {
    return attempts.empty() ? nullptr : &attempts.back();
  }
  // Nullptr: it is the first.
  [[nodiscard]] const AttemptRecord* before(const AttemptRecord& attempt) const;
  [[nodiscard]] AttemptRecord* attempt(AttemptNo number);
  [[nodiscard]] const AttemptRecord* attempt(AttemptNo number) const;
};

// What is left of an archived job. It is enough to keep names, ids and request ids unique.
struct Tombstone {
  JobId id;
  std::string name;
  RequestId request_id;
  JobPhase phase = JobPhase::Succeeded;
  WallTime ended_at{};
  JobId chain = {};  // for a stage: resolved.stage's
  std::string chain_name = {};
  std::vector<SavedBefore> saved = {};
  std::string owner = {};  // as in JobRecord
};

// A secret of a user, or a shared one. Its value is in the vault.
struct SecretRecord {
  std::string item;  // as in SecretSet
  WallTime set_at{};
  std::string actor;
};

// A store of a user, or a shared one.
struct StoreRecord {
  v1::StoreProfile profile;
  WallTime set_at{};
  std::string actor;
};

struct Ledger {
  ClusterId cluster;
  Lineage lineage;
  Epoch epoch;  // of the lineage
  std::string version;
  JournalIndex index;  // of the last event that was folded
  std::map<NodeName, NodeRecord> nodes;
  std::map<JobId, JobRecord> jobs;  // live ones, and finished ones that are not archived yet
  std::map<JobId, Tombstone> tombstones;
  Indexes indexes;  // derived from the facts above
  // Address -> the port that was given last. A hint: the next search starts behind it.
  std::map<std::string, std::uint16_t> port_cursor;
  AccessRecords access;  // join tokens and certificates
  std::map<OwnedName, SecretRecord> secrets;
  std::map<OwnedName, StoreRecord> stores;
};

}  // namespace muster::core
