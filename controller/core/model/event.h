// Events are the durable facts: everything that can have happened. Plain values.
//
// apply() folds events into the Ledger. Only the journal's codec turns them into records. A new
// kind of event breaks the build wherever code must handle it, because std::visit has no catch-all.
// Add events, never give one a new meaning: the rows of every released version must replay.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/lineage.h"
#include "common/base/time.h"
#include "common/engine/model/placement.h"
#include "controller/core/model/access_event.h"
#include "controller/core/model/secret_event.h"
#include "controller/core/model/store_event.h"
#include "muster/v1/node.pb.h"
#include "muster/v1/spec.pb.h"

namespace muster::core {

enum class FailureClass { UserError, Signal, Oom, Node, Launch, Worker, Operator };
// Whose fault each one is: start_failures.h.
enum class StartFailure { Gone, Launch, Port, Disk, Node, Checkpoint, Inputs, InputsChanged };
// Why no process of an attempt is left on a node: muster.v1.SweptWhy explains each.
enum class SweptWhy {
  Ended,
  Stopped,
  Orphaned,
  WorkerDied,
  DiskRefusedWrites,
  Rebooted,
  NeverStarted,
  ClaimLost
};
// What a line of evidence describes. Cause: a fault of the rank itself. Consequence: what usually
// follows the end of another rank, such as "Connection reset by peer" or a collective's time-out.
// Unknown: there is no line.
enum class EvidenceKind { Unknown, Cause, Consequence };

struct Verdict {
  FailureClass cls = FailureClass::UserError;
  NodeName node;  // empty: no single node
  std::optional<RankNo> rank;
  std::string reason;     // one sentence
  std::string evidence;   // a log line; may be empty
  std::string signature;  // equal if the same failure happens again
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

using engine::OwnedShards;
using engine::PlacedNode;
using engine::SavedBefore;
using engine::ShardHolder;

struct ResumePoint {
  AttemptNo attempt;  // the attempt that wrote it
  std::int64_t step = 0;
  std::string path;  // directory of the checkpoint itself
  // It comes from spec.start: no attempt of this job wrote it. `attempt` is an attempt of another
  // job, or 0.
  bool from_start = false;
  std::uint32_t shards = 0;  // number of shards when it was found complete; 0: not known
  friend bool operator==(const ResumePoint&, const ResumePoint&) = default;
};

// --- the events ----------------------------------------------------------------------------------
// The journal keeps the first and the last ControllerStarted, and the first and the last
// NodeRegistered of each node. A later replay may lack those in between. So apply lets them change
// only the epoch, the cluster and the version, or that node's own record.
//
// The journal drops a NodeDeclaredDead with the node's next registration. It changes nothing that
// the registration does not set again.
struct ControllerStarted {
  Epoch epoch;
  ClusterId cluster;
  std::string version;
};
// A loss of the journal's end was accepted (lost_end.h). It is in the batch of the
// ControllerStarted that continues from there.
struct JournalEndLost {
  Lineage lineage;  // begins here
  // At most this many attempts of one job were in the lost end.
  std::uint32_t attempts_skipped = 0;
};
// The node registered, or its data changed: a new boot, a new instance, or another inventory.
// Clears "dead".
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
  std::string by = {};  // user; empty: the one who runs the controller
};

// Facts of operators about a node (nodes/drain.h, nodes/removal.h). `actor` is who did it, as `by`
// of NodeDeclaredDead: the user of a certificate, or empty. Registrations of the node change
// nothing of them.
//
// The journal keeps the last NodeDrained and NodeLabelled of each node, and neither after a
// NodeUndrained or a NodeRemoved.
struct NodeDrained {
  NodeName node;
  std::string actor = {};
  std::string why = {};
  WallTime since{};  // the first one's time: a later one may only change the rest
  std::optional<WallTime> deadline = std::nullopt;
};
struct NodeUndrained {
  NodeName node;
  std::string actor;
};
struct NodeLabelled {
  NodeName node;
  std::string actor;
  std::map<std::string, std::string> labels;  // all that operators have set
};
// After this event the ledger has nothing of the node, and the journal drops its rows.
struct NodeRemoved {
  NodeName node;
  std::string actor;
};
// The node has another name. Its labels and its drain go along; instance, boot and a word that it
// is dead do not.
struct NodeRenamed {
  NodeName node;
  NodeName new_name;
  std::string actor;
};

struct JobSubmitted {
  JobId job;
  RequestId request_id;
  v1::JobSpec spec;
  v1::ResolvedSpec resolved;
  std::string spec_hash;
  std::string owner = {};  // user; empty: the one who runs the controller
};
struct CancelRequested {
  JobId job;
  std::string reason;
  std::string by = {};  // as in NodeDeclaredDead
};

// One of the jobs that `job` waits for (spec.schedule.after) has succeeded. The event is in the
// batch of that job's end, or of the submission of `job`.
struct PredecessorSucceeded {
  JobId job;  // the job that waits
  JobId predecessor;
  // The predecessor's newest complete checkpoint, if spec.start of `job` names the predecessor.
  std::optional<ResumePoint> checkpoint = std::nullopt;
  // Where the predecessor's files are, if `job` has checkpoint.storage: local.
  std::optional<OwnedShards> owned = std::nullopt;
};

struct AttemptPlaced {
  JobId job;
  AttemptNo attempt;
  std::vector<PlacedNode> nodes;  // rank order
  std::uint16_t master_port = 0;
  std::optional<ResumePoint> resume;
  std::string table_sha256;             // of the rank table; empty: no table
  std::vector<SavedBefore> saved = {};  // by earlier jobs, for what a node's script may load
  std::vector<PinnedSecret> secrets = {};
  std::vector<PinnedInput> inputs = {};                    // those that are in stores
  std::optional<PinnedOutput> output = std::nullopt;       // not set: outputs go nowhere
  std::optional<PinnedOutput> logs_output = std::nullopt;  // not set: logs go to no store
};
// --- what agents report (muster.v1.Fact; fact.h converts) ----------------------------------------
// `node_time` is by the node's own wall clock. `controller_time` is the same moment by the
// controller's: the arrival minus the fact's age. `instance` is the state directory of the agent
// that reported it. If the controller concluded the fact itself, both times are its own, and
// `instance` is empty.
struct NodeStarted {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::vector<std::uint64_t> pids;
  std::uint64_t worker_pid = 0;
  WallTime node_time;
  v1::NodeResolved resolved;
  WallTime controller_time{};
  InstanceId instance = {};
};
// Limit for the name of a step of a start.
inline constexpr std::size_t kStartStepBytes = 32;
struct NodeStartFailed {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  StartFailure why{};
  std::string text;
  WallTime node_time;
  std::string step = {};  // of the start, one word: "code"; empty: unknown, or none
  // Only for StartFailure::Checkpoint: what the node found in the checkpoint to resume from. Shards
  // have the layout's names. needed == 0: the node did not read it, but found newer ones
  // (CheckpointCompleted).
  std::vector<std::string> torn = {};  // shards that the node read and found short or damaged
  std::uint32_t there = 0, needed = 0;
  std::string names_sha256 = {};  // of the names of the shards that exist
  WallTime controller_time{};
  InstanceId instance = {};
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
  // It ended well, and its agent could not find out whether success_seen is true.
  bool success_unknown = false;
  std::string evidence;
  WallTime node_time;
  EvidenceKind evidence_kind{};
  // The last step in its log, and the total number of steps. Not set: the log has none, or the
  // agent did not check.
  std::optional<std::int64_t> step, total;
  bool killed_unasked = false;  // SIGKILL after a requested stop, and before muster's own SIGKILL
  // Ends on one node are ordered by node_time, which is exact.
  WallTime controller_time{};
  // For a node's script: the rank inside the script that ended.
  std::optional<std::uint32_t> training_rank = std::nullopt;
  InstanceId instance = {};
};
// A process of the attempt that is no rank (MindSpore's scheduler) ended badly before muster asked
// it to stop.
struct AuxiliaryExited {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::string name;
  std::int32_t code = 0;  // -1 when signal is set
  std::int32_t signal = 0;
  std::string evidence;
  WallTime node_time;
  WallTime controller_time{};
  InstanceId instance = {};
};
struct NodeSwept {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  SweptWhy why = SweptWhy::Ended;
  WallTime node_time;
  // The agent will send the log of each rank. False also if the controller concluded the sweep.
  bool logs_follow = false;
  WallTime controller_time{};
  InstanceId instance = {};
};
struct FirstStep {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::int64_t step = 0;
  WallTime node_time;
  WallTime controller_time{};
  InstanceId instance = {};
};
// While the attempt ran, the node's wall clock was more than a minute off the controller's. Once
// for each attempt and node.
struct NodeClockSkewed {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  Duration ahead{};  // of the controller's clock; negative: behind it
  WallTime node_time;
  WallTime controller_time{};
  InstanceId instance = {};
};
// As in v1.RemoteCheckpoint.
struct RemoteCheckpoint {
  AttemptNo attempt;
  std::int64_t step = 0;
  bool mark = false;
  friend bool operator==(const RemoteCheckpoint&, const RemoteCheckpoint&) = default;
};
// The node has uploaded what it has of the job's outputs, or has given up. With a step: of that
// checkpoint; with `seal`: the mark that it is whole. Without: everything, after the node was
// swept; once for each attempt and node that uploads. With `logs`: the same for logs.
struct OutputsUploaded {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::string problem = {};  // a sentence; empty: all are there
  std::optional<std::int64_t> step = {};
  bool seal = false;
  std::string sums_sha256 = {};  // of its list of the checkpoint's sums; empty: it wrote none
  // With a seal, or in the end: these are not in the store any more. `not_removed`: why others are.
  std::vector<RemoteCheckpoint> removed = {};
  std::string not_removed = {};
  bool logs = false;
  WallTime node_time;
  WallTime controller_time{};
  InstanceId instance = {};
};
// In a node's script, the first launch that saves checkpoints, which muster redirected. Once for
// each attempt; the first report counts, from any node.
struct ScriptLaunched {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::uint32_t first_rank = 0;  // first rank of the training
  std::uint32_t ranks = 0;       // started on this node
  std::string save;              // absolute; where it would have saved
  bool weights_alone = false;    // saves no optimizer: no attempt resumes from its checkpoints
  WallTime node_time;
  WallTime controller_time{};
  InstanceId instance = {};
};

// --- what the controller concludes ---------------------------------------------------------------
struct CheckpointCompleted {
  JobId job;
  AttemptNo attempt;
  std::int64_t step = 0;
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t shards = 0;
};
// No attempt resumes from this checkpoint any more. Either two attempts in a row resumed from it
// and failed at once in the same way, or a node read it and found it torn.
struct CheckpointQuarantined {
  JobId job;
  AttemptNo attempt;  // the attempt that wrote it
  std::int64_t step = 0;
  std::string reason;
};

// A fault or a cancel broke this attempt; its ranks are being stopped. `cause` is what was known
// first; the verdict follows.
struct AttemptBroke {
  JobId job;
  AttemptNo attempt;
  std::string cause;
  WallTime fault_time;  // by the controller's clock
  // When the first message about the fault arrived, by the controller's clock.
  WallTime detected_at;
  NodeName drained = {};  // whose drain's deadline broke it; empty: something else did
  // The input of which two nodes have different objects; empty: something else broke it.
  std::string differing_input = {};
};
// No rank of the attempt can advance any more: every node is swept, or another rule of the fence
// holds. Verdict and charge are final here.
//
// `job_ends`: no other attempt follows, and the JobEnded of the same batch holds the outcome.
// Otherwise the job returns to the front of the queue.
struct AttemptEnded {
  JobId job;
  AttemptNo attempt;
  Verdict verdict;
  bool charged = false;
  std::int64_t best_step = -1;
  std::string fence;
  bool job_ends = false;
};
// Something that a user should know and that changes nothing. Each note comes once for each
// attempt.
enum class Note { LossNotFinite, UnknownFiles, InputsChanged, OutputsIncomplete };
struct AttemptNoted {
  JobId job;
  AttemptNo attempt;
  Note note = Note::LossNotFinite;
  NodeName node;
  std::optional<std::int64_t> step = {};  // LossNotFinite: the step of that loss
  std::string text = {};  // UnknownFiles: one of the files. InputsChanged: their names.
                          // OutputsIncomplete: of nodes that were lost.
};
// The attempt reached the best step of the broken attempt again. This closes the incident.
struct CaughtUp {
  JobId job;
  AttemptNo attempt;
  std::int64_t step = 0;
};
struct AttemptCompleted {
  JobId job;
  AttemptNo attempt;
  std::int64_t best_step = -1;
};  // every rank ended as the success condition requires
enum class Outcome { Succeeded, Failed, Cancelled };
struct JobEnded {
  JobId job;
  Outcome outcome{};
  std::optional<Verdict> verdict;
};
// Every log byte of this node's part is on the controller's disk, so the run directory may be
// deleted.
struct LogsCollected {
  JobId job;
  AttemptNo attempt;
  NodeName node;
};
// The job leaves the ledger, and its rows move to the archive (Journal::archive). A later replay
// does NOT see its other events any more, not even JobSubmitted. So this record alone carries all
// data of the tombstone.
//
// decide fills every field from the JobRecord. apply makes the Tombstone from the event, whether
// the ledger still has the job or not. If it has the job, apply removes the job, its name, its
// request id and its logs-collected state.
struct JobArchived {
  JobId job;
  std::string name;
  RequestId request_id;
  Outcome outcome{};
  WallTime ended_at{};
  JobId chain = {};  // for a stage: spec.stage's
  std::string chain_name = {};
  std::vector<SavedBefore> saved = {};
  std::string owner = {};  // as in JobSubmitted
};
// After this event the ledger has nothing of the job, and the journal drops both rows. So apply
// must accept the event without a tombstone.
struct TombstoneDropped {
  JobId job;
};

using EventBody =
    std::variant<ControllerStarted, JournalEndLost, NodeRegistered, NodeDeclaredDead, JobSubmitted,
                 CancelRequested, AttemptPlaced, NodeStarted, NodeStartFailed, RankExited,
                 NodeSwept, FirstStep, CheckpointCompleted, CheckpointQuarantined, AttemptBroke,
                 AttemptEnded, CaughtUp, AttemptCompleted, JobEnded, LogsCollected, JobArchived,
                 TombstoneDropped, AuxiliaryExited, PredecessorSucceeded, AttemptNoted,
                 ScriptLaunched, NodeClockSkewed, NodeDrained, NodeUndrained, NodeLabelled,
                 NodeRemoved, TokenCreated, TokenRevoked, CertificateIssued, CertificateRevoked,
                 NodeRenamed, AuthorityChanged, SecretSet, SecretRemoved, StoreSet, StoreRemoved,
                 OutputsUploaded>;

struct Event {
  WallTime at{};  // time of the batch that accepted it
  EventBody body;
};

// A row of the journal.
struct Row {
  JournalIndex index;
  Event event;
};

}  // namespace muster::core
