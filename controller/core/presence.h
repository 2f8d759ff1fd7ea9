// Presence: what can be seen now. Never journaled, lost with the process, rebuilt within a
// heartbeat by
// the agents that reconnect.
// Owned by the shell's strand. observe() (core.h) is the only writer.
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
#include "controller/core/event.h"
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

// One step's checkpoint of one attempt, as its nodes report it.
struct CheckpointSeen {
  std::map<std::string, ShardSeen> shards;
  std::uint32_t expected = 0;
  bool sealed = false;
  std::string path;
  std::size_t names_bytes = 0;          // of `shards`, about; bounded
  [[nodiscard]] bool complete() const;  // sealed, all expected shards there and finished
};

struct AttemptSeen {
  std::map<RankNo, RankSeen> ranks;
  std::map<std::int64_t, CheckpointSeen> checkpoints;  // newest few steps
  // runtime.image is being brought, or runtime.setup is under way there: how far, if that can be
  // told
  std::map<NodeName, std::string> setting_up;
  // there they cannot be renewed: its ranks are stopped then
  std::map<NodeName, BootTime> leases_end;
  std::int64_t best_step = -1;
  double step_seconds = 0;  // mean of the recent ones
  WallTime last_step_at{};  // the epoch: not known
};

struct NodeSeen {
  ConnectionId connection;  // none: not connected
  InstanceId instance;
  BootTime last_heard{};  // arrival, stamped in the gRPC callback
  WallTime last_heard_wall{};
  // last HeartbeatAck: from here the agent's orphan grace counts at the latest
  BootTime last_ack_sent{};
  bool heard = false;  // since this controller started
  BootTime connected_at{};
  BootId boot_id;                                 // of the Hello; may be empty
  std::set<std::pair<JobId, AttemptNo>> present;  // run directories it said it has
  // Of these, not swept, and not in the ledger when it said so: the journal's end was lost, or
  // their job archived without them. What they run holds devices that nobody gave out, until the
  // agent says otherwise.
  std::set<std::pair<JobId, AttemptNo>> unknown_runs;
  // Not held, though its agent had started them, and is the same on the same boot: it was told to
  // forget them, which the journal lost. Nothing of them is left.
  std::set<std::pair<JobId, AttemptNo>> forgotten;
  // Not held, though it told that it had started them, not swept, and no such loss explains it: its
  // state directory is another's copy, or was put back from an older one. What it had started may
  // run, and only its sweep can say otherwise: no order to run is given again (links).
  std::set<std::pair<JobId, AttemptNo>> missing;
  // why its state directory's disk takes no writes; empty: it does
  std::string disk_trouble;
  // by id: the latest look, of this connection; none: the agent has not said
  std::map<std::uint32_t, v1::DeviceReading> devices;
};

struct Presence {
  BootTime listening_since{};  // a node never heard is judged from here
  std::map<NodeName, NodeSeen> nodes;
  std::map<std::pair<JobId, AttemptNo>, AttemptSeen> attempts;
  // highest attempt that a node had and the ledger had not: never to be given out again
  std::map<JobId, AttemptNo> numbers_reported;
  // checkpoints seen complete that the ledger did not have when last looked
  std::set<std::tuple<JobId, AttemptNo, std::int64_t>> whole;
  // seen, and not in the ledger when last looked
  std::map<std::tuple<JobId, AttemptNo, Note>, AttemptNoted> notes;
  // `attempts` is cleared of archived jobs when it grows past this
  std::size_t prune_at = 64;
};

// Nothing was heard of the node for silent_after; a node never heard is judged from
// listening_since. A reading, never a fact.
bool is_silent(const Presence& presence, const NodeName& node, BootTime now, Duration silent_after);
// Its last word, or listening_since.
BootTime last_word(const Presence& presence, const NodeName& node);
bool is_connected(const Presence& presence, const NodeName& node);
bool is_forgotten(const Presence& presence, const NodeName& node,
                  const std::pair<JobId, AttemptNo>& run);

}  // namespace muster::core
