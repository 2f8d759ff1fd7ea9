// What can be asked of decide(): from clients, from agents, and from propose(). Values; edges stamp
// arrival time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controller/core/event.h"
#include "controller/core/job_phase.h"
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
  v1::JobSpec spec;  // as SubmitJob's
  std::string spec_hash;
};
struct SubmitJob {
  JobId job;
  RequestId request_id;
  v1::JobSpec spec;  // validated, defaults filled in; schedule.after as ids
  std::string spec_hash;
  // of schedule.after, what whoever submits has looked up in the archive
  std::map<JobId, ArchivedEnd> archived = {};
  // The rest of the chain that `job` is the first of; of the chain each names only jobs before it.
  // All are taken, or none.
  std::vector<ChainedJob> behind = {};
};
struct CancelJob {
  JobId job;
  std::string reason;
  bool whole_chain = false;  // every job of the chain that `job` is of, as far as it has not ended
};
struct DeclareNodeDead {
  NodeName node;
  std::string reason;
};

// --- from agents ---------------------------------------------------------------------------------
struct RegisterNode {
  NodeName node;
  InstanceId instance;
  BootId boot_id;
  v1::Inventory inventory;
  std::string version;
  std::optional<Duration> uptime = {};  // of this boot, at the Hello; nothing: not told
};
struct ReportFact {
  NodeName node;
  InstanceId instance;
  v1::Fact fact;
};
// Also from propose(), of logs that can never come.
struct ReportLogsCollected {
  JobId job;
  AttemptNo attempt;
  NodeName node;
};

// --- from propose(): never effective by themselves -----------------------------------------------
struct ProposePlacement {
  JobId job;
  AttemptNo attempt;
  std::vector<PlacedNode> nodes;
  std::uint16_t master_port = 0;
  std::optional<ResumePoint> resume;
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
};  // a node's part is lost, its grace has run out, cancel asked ...
struct ProposeEnd {
  JobId job;
  AttemptNo attempt;
  std::string fence;
};  // the fence holds: verdict, charge, next or final
struct ProposeComplete {
  JobId job;
  AttemptNo attempt;
};  // every rank done and swept
struct ProposeCaughtUp {
  JobId job;
  AttemptNo attempt;
  std::int64_t step = 0;
};
struct ProposeNote {
  AttemptNoted note;
};
// The node came back on another boot and no longer has the run directory: nothing of the attempt is
// left there, and nobody else will say so.
struct ProposeSwept {
  JobId job;
  AttemptNo attempt;
  NodeName node;
  std::string reason;
};
// A job has ended, or is gone, and the jobs that wait for it have not heard of it.
struct ProposeSettle {
  JobId predecessor;
};
struct ProposeArchive {
  JobId job;
};
struct ProposeDropTombstone {
  JobId job;
};

using Input = std::variant<SubmitJob, CancelJob, DeclareNodeDead, RegisterNode, ReportFact,
                           ReportLogsCollected, ProposePlacement, ProposeCheckpoint, ProposeBreak,
                           ProposeEnd, ProposeComplete, ProposeCaughtUp, ProposeNote, ProposeSwept,
                           ProposeSettle, ProposeArchive, ProposeDropTombstone>;

// --- what only changes Presence ------------------------------------------------------------------
// Order at a Hello: RegisterNode is decided first; when it is not refused, Connected is observed
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
// The node says that nothing of this run is left there. Of a run of the ledger that is a fact, and
// said by ReportFact; of one that it does not know it frees the node. Observed behind the fact,
// known or not.
struct SweptHeard {
  NodeName node;
  ConnectionId connection;
  JobId job;
  AttemptNo attempt;
};
using Observation =
    std::variant<Connected, Disconnected, HeartbeatHeard, HeartbeatAcked, SweptHeard>;

}  // namespace muster::core
