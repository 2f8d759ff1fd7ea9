// The control plane's network: connections between agents and the controller, each with two ordered
// streams. World owns it. It runs on its history's one thread.
//
// Within one stream, nothing is lost, duplicated or reordered. When a connection breaks, messages
// in flight may be lost. They may also arrive late, after the messages of the new connection.
// Either end may notice the break long after the other.
#pragma once

#include <map>
#include <memory>

#include "muster/v1/agent_service.pb.h"
#include "tests/sim/machine.h"

namespace muster::sim {

struct Link {
  ConnectionId id;
  Machine* machine = nullptr;
  std::uint64_t agent_incarnation = 0, controller_incarnation = 0;
  bool agent_open = true, controller_open = true;  // as each end believes
  // The controller hands over what it had read when it closed the stream.
  Time controller_reads_until = kNever;
  struct Direction {
    Time last = 0;            // nothing overtakes
    Time lost_from = kNever;  // what would arrive later is lost
    Time stalled_until = 0;
    std::uint64_t in_flight = 0;
  };
  Direction up, down;
};
using LinkPtr = std::shared_ptr<Link>;

struct Down {
  v1::ConnectResponse what;
  std::uint64_t order = 0;  // counted over all Orders that were ever sent
};

class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  // Nothing: nobody answers.
  LinkPtr connect(Machine& machine);
  // For a machine that is not part of this history.
  ConnectionId strangers_connection() { return ConnectionId(next_id_++); }
  void send_up(const LinkPtr& link, v1::ConnectRequest message);
  void send_down(const LinkPtr& link, std::shared_ptr<const Down> message);
  // An end closes, or its process dies. The other end is notified, if anything can reach it.
  void closed_by_agent(const LinkPtr& link);
  void closed_by_controller(const LinkPtr& link);
  void machine_off(Machine& machine);
  [[nodiscard]] bool reachable(const Machine& machine) const;
  // Something that its agent will still get is on its way.
  [[nodiscard]] bool underway_to(const Machine& machine) const;
  [[nodiscard]] Time delay();

  // --- faults ------------------------------------------------------------------------------------
  void break_link(Machine& machine);  // in one of the ways above, by chance
  void stall(Machine& machine, Time until);
  void partition(Machine& machine, Time until);
  void heal();

 private:
  LinkPtr newest(const Machine& machine) const;
  void tell_agent(const LinkPtr& link, Time after);
  void tell_controller(const LinkPtr& link, Time after);
  template <class Deliver>
  void carry(Link::Direction Link::* direction, const LinkPtr& link, Deliver deliver);

  World& world_;
  std::uint64_t next_id_ = 1;
  std::map<NodeName, LinkPtr> newest_;
  std::map<NodeName, Time> cut_off_;  // until
};

}  // namespace muster::sim
