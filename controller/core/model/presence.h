// Presence holds what the controller sees at the moment. The Shell owns it. Only the shell's strand
// uses it. observe() (core.h) writes it; turn() (turn.h) writes `placed_at` and
// `queued_again_at`.
//
// It is never journaled and is lost with the process. Agents that reconnect rebuild it within a
// heartbeat.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "controller/core/model/event.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::core {

struct RankSeen {
  std::int64_t step = -1;
  std::int64_t total = 0;
  double loss = 0;
  bool has_loss = false;
  bool loss_not_finite = false;
  std::uint64_t log_bytes = 0;
};

struct ShardSeen {
  std::uint64_t bytes = 0;
  bool finished = false;
};

// The checkpoint of one step of one attempt, as the nodes report it.
struct CheckpointSeen {
  std::map<std::string, ShardSeen> shards;
  std::uint32_t expected = 0;
  bool sealed = false;
  std::string path;
  std::size_t names_bytes = 0;          // approximate size of `shards`; bounded
  [[nodiscard]] bool complete() const;  // sealed, and all expected shards exist and are finished
};

// How far one node has come with its start.
struct StartSeen {
  bool setting_up = false;  // v1::AttemptReading.setting_up
  std::string step;         // one word: "fetch"; empty: the agent does not report it
  std::string progress;     // empty: not known
};

struct AttemptSeen {
  std::map<RankNo, RankSeen> ranks;
  std::map<std::int64_t, CheckpointSeen> checkpoints;  // the newest few steps
  std::map<NodeName, StartSeen> starts;                // that are under way
  // On these nodes the lease cannot be renewed. At this time the worker stops the ranks.
  std::map<NodeName, BootTime> leases_end;
  std::int64_t best_step = -1;
  double step_seconds = 0;  // mean of the recent steps
  WallTime last_step_at{};  // WallTime{}: not known
};

// A node's latest check of the directory of outputs (v1::OutputsReading).
struct OutputsSeen {
  std::string root;
  std::string trouble;
  std::string storage_id;             // empty: not known
  std::vector<InstanceId> instances;  // sorted
  [[nodiscard]] bool good() const { return trouble.empty() && !storage_id.empty(); }
};

struct NodeSeen {
  ConnectionId connection;  // none: not connected
  InstanceId instance;
  BootTime last_heard{};  // arrival, stamped in the gRPC callback
  WallTime last_heard_wall{};
  // When the last HeartbeatAck was sent. The agent's orphan grace counts from here at the latest.
  BootTime last_ack_sent{};
  bool heard = false;  // since this controller started
  BootTime connected_at{};
  BootId boot_id;                                 // from the Hello; may be empty
  std::set<std::pair<JobId, AttemptNo>> present;  // run directories that it reported
  // The runs in `present` that are not swept and were not in the ledger at the Hello: the journal's
  // end was lost, or their job was archived without them. They may use devices that nobody
  // reserved, until the agent reports otherwise.
  std::set<std::pair<JobId, AttemptNo>> unknown_runs;
  // Swept runs that wait for their logs, and that the node does not have, although its agent is the
  // same instance on the same boot. Their logs will not come: the agent was ordered to forget them,
  // and the journal lost that, or its state directory was put back from an older copy.
  std::set<std::pair<JobId, AttemptNo>> forgotten;
  // Runs that the node does not have, although it reported their start or end, and they are not
  // swept. Its state directory is a copy of another one, or was restored from an older copy. Or the
  // agent was ordered to forget them, and the journal lost that. The processes may still run, and
  // only its sweep can report otherwise. The order to run is not sent again (peers.h).
  std::set<std::pair<JobId, AttemptNo>> missing;
  // Why the disk of its state directory takes no writes. Empty: it takes writes.
  std::string disk_trouble;
  std::optional<v1::HostReading> host;  // the latest check of the machine, without its `outputs`
  std::optional<OutputsSeen> outputs;   // on this connection; none: not reported yet
  BootTime outputs_good_since{};        // when `outputs` became good
  // How far its wall clock was ahead at the last heartbeat, with the time of that message in it.
  std::optional<Duration> clock_ahead;
  // By device id: the latest probe on this connection. None: the agent has not sent any.
  std::map<std::uint32_t, v1::DeviceReading> devices;
};

struct Presence {
  BootTime listening_since{};  // a node that was never heard is judged from here
  // When this controller placed the attempts that have not ended. turn() keeps it.
  std::map<std::pair<JobId, AttemptNo>, BootTime> placed_at;
  // When this controller ended the last attempt of a job that has been queued since. turn() keeps
  // it.
  std::map<JobId, BootTime> queued_again_at;
  std::map<NodeName, NodeSeen> nodes;
  std::map<std::pair<JobId, AttemptNo>, AttemptSeen> attempts;
  // The highest attempt number that a node reported and the ledger does not have. It is never used
  // again.
  std::map<JobId, AttemptNo> numbers_reported;
  // Complete checkpoints that the ledger did not have at the last check.
  std::set<std::tuple<JobId, AttemptNo, std::int64_t>> whole;
  // Notes that the ledger did not have at the last check.
  std::map<std::tuple<JobId, AttemptNo, Note>, AttemptNoted> notes;
  // `attempts` is cleared of archived jobs when it reaches this size.
  std::size_t prune_at = 64;
};

// The node was not heard for silent_after. A node that was never heard is judged from
// listening_since. This is presence, never a fact.
bool is_silent(const Presence& presence, const NodeName& node, BootTime now, Duration silent_after);
// When the node was last heard, but not before listening_since.
BootTime last_word(const Presence& presence, const NodeName& node);
bool is_connected(const Presence& presence, const NodeName& node);
bool is_forgotten(const Presence& presence, const NodeName& node,
                  const std::pair<JobId, AttemptNo>& run);

}  // namespace muster::core
