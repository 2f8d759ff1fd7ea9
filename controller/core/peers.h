// Decides about the agents' streams: which stream has which node's name, who is welcomed, and what
// each agent is ordered. The driver owns it: controller/links/hub in production, ControllerModel in
// the simulator. The driver passes only durable state, and carries out what the results name. Pure;
// used on the shell's strand.
//
// Rules:
// - One instance for each node name. Another instance is refused, with the owner of the name. The
//   same instance replaces its old stream, but not by a Hello that was overtaken by a newer one.
// - A Hello may name more than this journal can have reported (reaches_beyond). Then the journal is
//   older than it must be: the Hello is refused, and `behind` explains it, so that the driver
//   pauses. A paused controller welcomes nobody and gives no orders.
// - The stream of a node that is declared dead is ended; only a new Hello takes the node back.
// - A part that was started is never ordered to run again. If its agent does not have it, it is
//   stopped. The same is true for every part of an attempt that was placed before the journal's end
//   was lost.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "controller/core/change_budget.h"
#include "controller/core/core.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::core {

class Peers {
 public:
  // What the driver shows for one call.
  struct View {
    const Ledger& ledger;  // all of it is durable
    const Presence& presence;
    const std::string& paused;  // why nothing is accepted any more; empty: inputs are accepted
    JournalIndex last;          // the last durable row
  };
  struct Stream {
    NodeName node;
    ConnectionId connection;
  };
  // A stream that the driver must end, with the reason.
  struct Ending {
    Stream stream;
    Error why;
  };
  struct Orders {
    Stream stream;
    v1::Orders standing;           // every Stop and Forget
    std::vector<Assignment> runs;  // new on this stream; the driver makes their orders
    std::set<AttemptKey> running;  // all parts that are to run
  };

  explicit Peers(Duration heartbeat_interval) : heartbeat_interval_(heartbeat_interval) {}
  // `loaded`: the journal's last row before this start.
  void set_start(JournalIndex loaded) { loaded_ = loaded; }

  // --- Hello -------------------------------------------------------------------------------------
  struct Judgement {
    std::optional<Error> refusal;
    // Set with a refusal: the journal is older than it must be, and this text explains how that is
    // known.
    std::string behind;
    // Without a refusal: end this stream, then decide the input, and observe `then` directly after
    // it.
    std::optional<Ending> replaced;
    RegisterNode input;
    Connected then;
  };
  // `from` is the address of the agent, for texts. `connection` was never used before.
  Judgement hello(const v1::Hello& hello, ConnectionId connection, const std::string& from,
                  Now arrived, const View& view);
  struct Admission {
    std::optional<Error> refusal;
    std::optional<v1::Welcome> welcome;  // and then the orders: orders(node, view, true)
  };
  // The input of the Hello was decided (`refusal`), and that is durable. Neither result: the stream
  // has ended or was replaced meanwhile.
  Admission registered(const Stream& stream, const std::optional<Error>& refusal, const View& view);
  // The stream has ended. Does nothing if it was not accepted, or was replaced.
  void gone(const Stream& stream);

  // --- orders ------------------------------------------------------------------------------------
  // The streams that must end because of these rows.
  std::vector<Ending> released(std::span<const Row> rows, const Ledger& ledger);
  // Nothing: the node is not connected, or the orders have not changed. `always`: also if they have
  // not changed.
  std::optional<Orders> orders(const NodeName& node, const View& view, bool always);
  // Notes the run directories that the heartbeat names. True: the node has an attempt that none of
  // its orders names, so they must be made again once all that is known of it is durable.
  //
  // Short jobs may end faster than their Forgets are sent, and standing orders name only the
  // newest.
  bool has_leftovers(const HeartbeatHeard& heartbeat);

  // Whether the node has a stream that was welcomed.
  [[nodiscard]] bool is_welcomed(const NodeName& node) const;

 private:
  struct Peer {
    ConnectionId connection;
    InstanceId instance;
    std::string from;
    std::set<AttemptKey> present;  // run directories that its Hello named
    std::set<AttemptKey> seen;     // run directories that its latest heartbeat named
    std::vector<Assignment> sent;
    bool welcomed = false;
    std::string incarnation;
    std::string boot_id;
    Duration uptime{};      // of the machine when the agent made its Hello
    std::string contender;  // the latest other incarnation that asked for the name
    BootTime contended_since{};
    std::uint32_t protocol_max = 0;  // the newest that the agent speaks
  };
  static std::optional<Error> outdated(const Peer& holder, const v1::Hello& hello);
  std::optional<Error> other_incarnation(Peer& holder, const v1::Hello& hello, Now arrived,
                                         const Presence& presence) const;
  std::optional<Error> too_many_changes(const v1::Hello& hello, const Ledger& ledger, Now arrived);
  Ending end(std::map<NodeName, Peer>::iterator peer, std::string_view why);

  Duration heartbeat_interval_;
  JournalIndex loaded_;
  std::map<NodeName, Peer> peers_;
  std::set<InstanceId> welcomed_;  // since this start
  ChangeBudget changes_;
};

// Nodes whose orders may change because of these rows.
std::vector<NodeName> touched_nodes(std::span<const Row> rows, const Ledger& ledger);

}  // namespace muster::core
