// Inputs are what clients, agents and propose() ask decide() to accept. Plain values.
//
// The code that receives an input stamps its arrival time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controller/core/model/access_input.h"
#include "controller/core/model/event.h"
#include "controller/core/model/job_phase.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::core {

// --- from clients: each gets a reply -------------------------------------------------------------
// How a job ended that only the archive knows.
struct ArchivedEnd {
  std::string name;
  JobPhase phase{};
};
// A further job of a chain.
struct ChainedJob {
  JobId job;
  v1::JobSpec spec;  // as in SubmitJob
  v1::ResolvedSpec resolved;
  std::string spec_hash;
};
struct SubmitJob {
  JobId job;
  RequestId request_id;
  v1::JobSpec spec;  // validated, defaults filled in
  v1::ResolvedSpec resolved;
  std::string spec_hash;
  // The jobs of resolved.after that the submitter found in the archive.
  std::map<JobId, ArchivedEnd> archived = {};
  // The rest of the chain whose first job is `job`. A job of the chain names only jobs of the chain
  // before it. All are accepted, or none.
  std::vector<ChainedJob> behind = {};
  std::string owner = {};  // of all its jobs; as in JobSubmitted
};
struct CancelJob {
  JobId job;
  std::string reason;
  bool whole_chain = false;  // every job of the chain of `job` that has not ended
  std::string by = {};       // as in CancelRequested
};
struct DeclareNodeDead {
  NodeName node;
  std::string reason;
  std::string by = {};  // as in NodeDeclaredDead
};
struct DrainNode {
  NodeName node;
  std::string actor;
  std::string why = {};                             // empty: none, or the one of before
  std::optional<Duration> deadline = std::nullopt;  // from now; not set: none, or the one of before
};
struct UndrainNode {
  NodeName node;
  std::string actor;
};
struct LabelNode {
  NodeName node;
  std::string actor;
  std::map<std::string, std::string> set = {};
  std::vector<std::string> remove = {};
};
struct RemoveNode {
  NodeName node;
  std::string actor;
};
struct RenameNode {
  NodeName node;
  NodeName new_name;
  std::string actor;
};

// The value is in the vault already, as `item`.
struct SetSecret {
  OwnedName key;
  std::string item;
  std::string actor;
};
struct RemoveSecret {
  OwnedName key;
  std::string actor;
};

struct SetStore {
  OwnedName key;
  v1::StoreProfile profile;
  std::string actor;
};
struct RemoveStore {
  OwnedName key;
  std::string actor;
};

// --- from agents ---------------------------------------------------------------------------------
struct RegisterNode {
  NodeName node;
  InstanceId instance;
  BootId boot_id;
  v1::Inventory inventory;
  std::string version;
  Duration uptime{};  // of this boot, at the Hello
};
struct ReportFact {
  NodeName node;
  InstanceId instance;
  v1::Fact fact;
};
// propose() sends it too, for logs that can never arrive.
struct ReportLogsCollected {
  JobId job;
  AttemptNo attempt;
  NodeName node;
};

// --- from propose(): no effect by themselves -----------------------------------------------------
struct ProposePlacement {
  JobId job;
  AttemptNo attempt;
  std::vector<PlacedNode> nodes;
  std::uint16_t master_port = 0;
};
struct ProposeCheckpoint {
  JobId job;
  AttemptNo attempt;
  std::int64_t step = 0;
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t shards = 0;
};
struct ProposeBreak {
  JobId job;
  AttemptNo attempt;
  std::string cause;
  NodeName drained = {};  // as in AttemptBroke
};  // a node's part is lost, its grace is over, a cancel was requested ...
struct ProposeEnd {
  JobId job;
  AttemptNo attempt;
  std::string fence;
};  // the fence holds: verdict, charge, next or final
struct ProposeComplete {
  JobId job;
  AttemptNo attempt;
};  // every rank ended well and every part is swept
struct ProposeCaughtUp {
  JobId job;
  AttemptNo attempt;
  std::int64_t step = 0;
};
struct ProposeNote {
  AttemptNoted note;
};
// The node returned on another boot without the run directory. Nothing of the attempt is left
// there, and nobody else will report that.
struct ProposeSwept {
  JobId job;
  AttemptNo attempt;
  NodeName node;
};
// The node has lost the run's directory before it had uploaded outputs, or logs.
struct ProposeOutputsLost {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  bool logs = false;
};
// The node is lost, and the others wait for its files of a checkpoint, or for the mark of one,
// before they upload everything.
struct ProposeCheckpointLost {
  JobId job;
  AttemptNo attempt;
  NodeName node;
};
// The predecessor has ended or does not exist, and the jobs that wait for it do not know that yet.
struct ProposeSettle {
  JobId predecessor;
};
struct ProposeArchive {
  JobId job;
};
struct ProposeDropTombstone {
  JobId job;
};

using Input = std::variant<
    SubmitJob, CancelJob, DeclareNodeDead, DrainNode, UndrainNode, LabelNode, RemoveNode,
    RegisterNode, ReportFact, ReportLogsCollected, ProposePlacement, ProposeCheckpoint,
    ProposeBreak, ProposeEnd, ProposeComplete, ProposeCaughtUp, ProposeNote, ProposeSwept,
    ProposeOutputsLost, ProposeCheckpointLost, ProposeSettle, ProposeArchive, ProposeDropTombstone,
    CreateToken, RevokeToken, JoinNode, RenewNode, LoginWithToken, LoginByUid, IssueCertificate,
    RevokeCertificate, RenameNode, ChangeAuthority, SetSecret, RemoveSecret, SetStore, RemoveStore>;

// --- what only changes Presence ------------------------------------------------------------------
// The order at a Hello: RegisterNode is decided first. If it is not refused, Connected is observed
// before the next propose().
struct Connected {
  NodeName node;
  ConnectionId connection;
  InstanceId instance;
  std::vector<v1::PresentAttempt> present;
  BootId boot_id;
};
struct Disconnected {
  NodeName node;
  ConnectionId connection;
};
struct HeartbeatHeard {
  NodeName node;
  ConnectionId connection;
  v1::Heartbeat heartbeat;
};
struct HeartbeatAcked {
  NodeName node;
  ConnectionId connection;
};
// The node reports that nothing of this run is left there. For a run in the ledger, this is a fact
// and comes through ReportFact. For a run that the ledger does not know, it frees the node. It is
// observed after the fact, for known and unknown runs.
struct SweptHeard {
  NodeName node;
  ConnectionId connection;
  JobId job;
  AttemptNo attempt;
};
using Observation =
    std::variant<Connected, Disconnected, HeartbeatHeard, HeartbeatAcked, SweptHeard>;

}  // namespace muster::core
