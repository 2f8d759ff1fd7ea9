// What the agent knows about its controller, and what it decides about the controller's messages.
// The Agent owns one and uses it on its loop; the simulator's agents use the same. Pure.
//
// Rules:
// - An agent belongs to one cluster. The cluster is durable before the first order is obeyed,
//   because process tags contain it.
// - Epochs and acknowledged indexes compare only within one lineage (common/base/lineage.h). A
//   newer lineage replaces them, and its epoch may be lower. A controller of an older lineage is
//   refused, and so is one of another lineage with the same generation.
// - A lineage and an epoch are durable before their orders are obeyed. Until then the orders wait.
// - Orders of another cluster, of another lineage or of an older epoch are ignored.
// - Orders of one connection are merged, those that wait as well. All are dropped at a Welcome,
//   because the controller sends again what still applies.
// - A lease is renewed from the sending of the heartbeat that is acknowledged, never from the
//   arrival of the acknowledgement.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/core/identity.h"
#include "agent/core/reconcile.h"
#include "common/base/error.h"

namespace muster::agent {

class ControllerLink {
 public:
  explicit ControllerLink(Identity stored) : identity_(std::move(stored)), stored_(identity_) {}

  // May be ahead of the disk.
  [[nodiscard]] const Identity& identity() const { return identity_; }
  void fill(v1::Hello& hello) const;

  // `join` must make the identity durable; it is called if the agent joins the cluster. True: store
  // identity() now, stored() must follow. An error means that this agent refuses the controller
  // (NotAllowed: it belongs to another cluster; Conflict: it is of an older or another copy of the
  // journal; InvalidArgument: no controller has such a lineage), or that `join` failed.
  Result<bool> welcome(const v1::Welcome& welcome,
                       const std::function<Result<void>(const Identity&)>& join);
  // The controller has refused this agent. True: it can never accept it. An agent that a controller
  // has accepted before does not give up because of one refusal.
  [[nodiscard]] bool is_final(bool other_cluster) const {
    return other_cluster && !welcomed_once_ && !identity_.cluster.empty();
  }

  struct Taken {
    bool accepted = false;  // the orders count: now, or when identity() is stored
    bool store = false;     // store identity() now; stored() must follow
    bool obey = false;      // orders() has changed
    std::string ignored;    // why the orders are ignored; empty also if this was returned before
  };
  Taken take(v1::Orders orders, const std::map<RunKey, RunSeen>& seen);
  // This identity is on disk, or the disk has refused it: a stop must not wait for disk space.
  // True: orders() has changed.
  bool stored(const Identity& identity, const std::map<RunKey, RunSeen>& seen);
  // What this connection has ordered. Null: nothing yet.
  [[nodiscard]] const v1::Orders* orders() const { return orders_ ? &*orders_ : nullptr; }
  // The runs whose orders are of an unknown kind, each once for a connection.
  std::vector<RunKey> take_unsupported();

  // True: identity() has changed. It may be stored later: if a crash loses it, the check against an
  // old journal only becomes less exact.
  bool take(const v1::FactAck& ack);

  // Returns the number of the heartbeat that is sent now. `mark` and `probe` are the newest
  // readings that it carries.
  std::uint64_t next_heartbeat(BootTime now, std::uint64_t mark, std::uint64_t probe);
  // When the acknowledged heartbeat was sent: leases count from there. Nothing: it is an unknown
  // one, or of a lower epoch.
  std::optional<BootTime> take(const v1::HeartbeatAck& ack);
  // The newest readings that the controller has; 0 with each connection.
  [[nodiscard]] std::uint64_t mark_acked() const { return mark_acked_; }
  [[nodiscard]] std::uint64_t probe_acked() const { return probe_acked_; }

 private:
  bool see_epoch(Epoch epoch);
  void obey(v1::Orders orders, const std::map<RunKey, RunSeen>& seen);

  struct HeartbeatSent {
    BootTime at{};
    std::uint64_t mark = 0, probe = 0;
  };
  Identity identity_;
  // On disk, or the disk refused it. Its acknowledged index may be out of date.
  Identity stored_;
  bool welcomed_once_ = false;
  std::optional<v1::Orders> orders_, waiting_orders_;
  std::string ignored_;           // the last reason
  std::set<RunKey> unsupported_;  // already returned
  std::uint64_t heartbeat_ = 0;
  std::map<std::uint64_t, HeartbeatSent> heartbeats_;  // not acknowledged yet
  std::uint64_t mark_acked_ = 0, probe_acked_ = 0;
};

}  // namespace muster::agent
