// Everything that can have happened: the durable facts, as values. apply() folds them into the
// Ledger; the journal's codec is the one place where they become records. A new kind breaks the
// build wherever it must be handled (std::visit without a catch-all).
// Add, never repurpose: rows of every released version must replay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "muster/v1/node.pb.h"
#include "muster/v1/spec.pb.h"

namespace muster::core {

enum class FailureClass { UserError, Signal, Oom, Node, Launch, Worker, Operator };
// whose fault each is: start_failures.h
enum class StartFailure { Gone, Launch, Port, Disk, Node, Checkpoint };
// What a line of evidence speaks of: the rank's own fault, or what follows, as a rule, from another
// rank's end ("Connection reset by peer", a collective's time-out). Unknown: no line, an older
// agent, or an older record.
enum class EvidenceKind { Unknown, Cause, Consequence };

struct Verdict {
  FailureClass cls = FailureClass::UserError;
  NodeName node;  // empty: no one node
  std::optional<RankNo> rank;
  std::string reason;     // one sentence
  std::string evidence;   // a log line; may be empty
  std::string signature;  // equal for "the same failure again"
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

struct PlacedNode {
  NodeName node;
  BootId boot_id;
  InstanceId instance;
  std::string address;
  std::vector<std::uint32_t> devices;
  RankNo first_rank;
  std::uint32_t rank_count = 0;
  // What the node said of itself and of these devices when it was placed; empty: not known.
  std::string device_type;  // empty: an older record
  std::string interface;    // that has `address`
  std::string device_model;
  std::vector<std::uint32_t> physical_ids;    // beside `devices`; empty: the same
  std::vector<std::string> device_ips;        // beside `devices`
  std::vector<std::string> super_device_ids;  // beside `devices`
  std::string super_pod_id;
  std::string server_id;        // in rank tables; empty: `address`
  std::uint16_t hccl_port = 0;  // first port of this host's for HCCL_IF_BASE_PORT; 0: HCCL's own
  friend bool operator==(const PlacedNode&, const PlacedNode&) = default;
};

struct ResumePoint {
  AttemptNo attempt;  // that wrote it
  std::int64_t step = 0;
  std::string path;  // directory of the checkpoint itself
  // by spec.start: no attempt of this job wrote it, and `attempt` is that of another job, or 0
  bool from_start = false;
  std::uint32_t shards = 0;  // that it had when it was found whole; 0: not known
  friend bool operator==(const ResumePoint&, const ResumePoint&) = default;
};

// --- the events ----------------------------------------------------------------------------------
// The journal keeps the first and the last ControllerStarted and those around an accepted loss
// (lost_end.h), and of each node the first and the last NodeRegistered; those between may be gone
// at the next replay, so apply lets them touch nothing but epoch, cluster and version, or that
// node's own record. NodeDeclaredDead goes with the node's next registration, and touches nothing
// that this does not set again.
struct ControllerStarted {
  Epoch epoch;
  ClusterId cluster;
  std::string version;
};
// Registered, or something of it changed: a new boot, a new instance, another inventory. Clears
// "dead".
struct NodeRegistered {
  NodeName node;
  InstanceId instance;
  BootId boot_id;
  v1::Inventory inventory;
  std::string version;
};
struct NodeDeclaredDead {
  NodeName node;
  std::string reason;
};

struct JobSubmitted {
  JobId job;
  RequestId request_id;
  v1::JobSpec spec;
  std::string spec_hash;
};
struct CancelRequested {
  JobId job;
  std::string reason;
};

// Who has the shards of an attempt on a disk of its own (checkpoint.storage: local).
struct ShardHolder {
  NodeName node;
  RankNo first_rank;
  std::uint32_t ranks = 0;  // 0: it has those of all ranks
  friend bool operator==(const ShardHolder&, const ShardHolder&) = default;
};
struct OwnedShards {
  AttemptNo attempt;
  std::vector<ShardHolder> holders;
  friend bool operator==(const OwnedShards&, const OwnedShards&) = default;
};

// Of a job that waits for others (spec.schedule.after): one of them has succeeded. In the batch of
// that one's end, or of this one's submission.
struct PredecessorSucceeded {
  JobId job;  // that waits
  JobId predecessor;
  // its newest whole one, where spec.start of the job that waits names it
  std::optional<ResumePoint> checkpoint = std::nullopt;
  // where its files are, where the job that waits has checkpoint.storage: local
  std::optional<OwnedShards> owned = std::nullopt;
};

// A whole checkpoint of a job whose node's script named the directory `as`, and saved elsewhere,
// because muster had redirected it (saved_before.h).
struct SavedBefore {
  std::string as;  // absolute
  JobId job;
  std::string path;  // directory of the checkpoint itself; empty: the job has none
  std::int64_t step = 0;
  friend bool operator==(const SavedBefore&, const SavedBefore&) = default;
};

struct AttemptPlaced {
  JobId job;
  AttemptNo attempt;
  std::vector<PlacedNode> nodes;  // rank order
  std::uint16_t master_port = 0;
  std::optional<ResumePoint> resume;
  std::string table_sha256;             // of the rank table; empty: none
  std::vector<SavedBefore> saved = {};  // by earlier jobs, for what a node's script would load
};
struct NodeStarted {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::vector<std::uint64_t> pids;
  std::uint64_t worker_pid = 0;
  WallTime node_time;
  v1::NodeResolved resolved;
};
struct NodeStartFailed {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  StartFailure why{};
  std::string text;
  // by the controller's clock where the agent tells ages: of several nodes the first is asked why
  WallTime node_time;
  // Of StartFailure::Checkpoint, of the one to resume from, by the layout's names. needed 0: it was
  // not read; newer ones were found (CheckpointCompleted).
  std::vector<std::string> torn = {};  // shards whose files were read, and are short or torn
  std::uint32_t there = 0, needed = 0;
  std::string names_sha256 = {};  // of the names of those that are there
};
struct RankExited {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  RankNo rank;
  std::int32_t code = 0;  // -1 when signal is set, or when lost
  std::int32_t signal = 0;
  bool stop_requested = false;
  bool oom = false;
  bool lost = false;  // nobody saw the status
  bool success_seen = false;
  std::string evidence;
  WallTime node_time;
  EvidenceKind evidence_kind{};
  // The last step that its log told, and of how many; nothing: none, nobody asked, or an older
  // agent or record.
  std::optional<std::int64_t> step, total;
  bool killed_unasked = false;  // SIGKILL after a stop was asked for, and before muster's own
  // By the controller's clock: arrival less the fact's age. Nothing: the agent told no age. What
  // ended on one node is ordered by node_time, which is exact.
  std::optional<WallTime> controller_time;
  // of a node's script: the rank inside it whose end this was
  std::optional<std::uint32_t> training_rank = std::nullopt;
  [[nodiscard]] WallTime ended() const { return controller_time.value_or(node_time); }
};
// A process of the attempt that is no rank (MindSpore's scheduler) ended badly before muster asked
// for it.
struct AuxiliaryExited {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::string name;
  std::int32_t code = 0;  // -1 when signal is set
  std::int32_t signal = 0;
  std::string evidence;
  WallTime node_time;
  std::optional<WallTime> controller_time;  // as in RankExited
  [[nodiscard]] WallTime ended() const { return controller_time.value_or(node_time); }
};
struct NodeSwept {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::string reason;
  WallTime node_time;
};
struct FirstStep {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::int64_t step = 0;
  WallTime node_time;
};
// Of a node's script: the first launch inside it that would have saved somewhere, and was
// redirected. Once an attempt, whoever says it.
struct ScriptLaunched {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::uint32_t first_rank = 0;  // of the training
  std::uint32_t ranks = 0;       // started on this node
  std::string save;              // absolute: where it would have saved
  bool weights_alone = false;    // it saves no optimizer: no attempt goes on from its checkpoints
  WallTime node_time;
};
struct CheckpointCompleted {
  JobId job;
  AttemptNo attempt;
  std::int64_t step = 0;
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t shards = 0;
};
// Two attempts in a row went on from it and failed the same way at once, or it was read and is
// torn: no attempt goes on from it any more.
struct CheckpointQuarantined {
  JobId job;
  AttemptNo attempt;  // that wrote it
  std::int64_t step = 0;
  std::string reason;
};

// Something ended this attempt; its ranks are being stopped. The cause here is what was known
// first; the verdict follows.
struct AttemptBroke {
  JobId job;
  AttemptNo attempt;
  std::string cause;
  WallTime fault_time;  // by the controller's clock; by the node's where its agent tells no ages
  // arrival of the first word of it, by the controller's clock; zero in older records: not known
  WallTime detected_at;
};
// No rank of it can advance any more: every node swept, or the fence's other rules. Verdict and
// charge are final here.
// `job_ends`: no other attempt follows, the JobEnded of the same batch says how; else the job goes
// back to the front of the queue.
struct AttemptEnded {
  JobId job;
  AttemptNo attempt;
  Verdict verdict;
  bool charged = false;
  std::int64_t best_step = -1;
  std::string fence;
  bool job_ends = false;
};
// The best step of the broken attempt was reached again: closes the incident.
// Something that a person should know, and that changes nothing: each once an attempt.
enum class Note { LossNotFinite, UnknownFiles };
struct AttemptNoted {
  JobId job;
  AttemptNo attempt;
  Note note = Note::LossNotFinite;
  NodeName node;
  std::optional<std::int64_t> step = {};  // LossNotFinite: of that loss
  std::string text = {};                  // UnknownFiles: one of the files
};
struct CaughtUp {
  JobId job;
  AttemptNo attempt;
  std::int64_t step = 0;
};
struct AttemptCompleted {
  JobId job;
  AttemptNo attempt;
  std::int64_t best_step = -1;
};  // every rank ended as success asks
enum class Outcome { Succeeded, Failed, Cancelled };
struct JobEnded {
  JobId job;
  Outcome outcome{};
  std::optional<Verdict> verdict;
};
// Every log byte of this node's part is on the controller's disk: its run directory may go.
struct LogsCollected {
  JobId job;
  AttemptNo attempt;
  NodeName node;
};
// The job leaves the fold: its rows move to the archive (Journal::archive) and a later replay does
// NOT see its other events any more, not even JobSubmitted. So this record alone carries all that
// the tombstone needs: decide fills every field from the JobRecord; apply makes the Tombstone from
// the event, whether the job is still in the ledger or not (then it is taken out, as are its name,
// request id and logs-collected state).
struct JobArchived {
  JobId job;
  std::string name;
  RequestId request_id;
  Outcome outcome{};
  WallTime ended_at{};
  JobId chain = {};  // of a stage: spec.stage's
  std::string chain_name = {};
  std::vector<SavedBefore> saved = {};
};
// After this nothing of the job is left in the fold, and the journal drops both rows: apply must
// bear it without a tombstone.
struct TombstoneDropped {
  JobId job;
};

using EventBody =
    std::variant<ControllerStarted, NodeRegistered, NodeDeclaredDead, JobSubmitted, CancelRequested,
                 AttemptPlaced, NodeStarted, NodeStartFailed, RankExited, NodeSwept, FirstStep,
                 CheckpointCompleted, CheckpointQuarantined, AttemptBroke, AttemptEnded, CaughtUp,
                 AttemptCompleted, JobEnded, LogsCollected, JobArchived, TombstoneDropped,
                 AuxiliaryExited, PredecessorSucceeded, AttemptNoted, ScriptLaunched>;

struct Event {
  WallTime at{};  // of the batch that accepted it
  EventBody body;
};

}  // namespace muster::core
