// Where a job's ranks meet when its spec names no interface, and the interface and address by which
// each node gets there. Pure; lives for one placement, whose ledger it refers to.
//
// The rule, for a job over several nodes:
//
//   rank 0's node    its own training address (Inventory.address) if every other node has a way to
//                    it. Else, where nobody gave that address (--address), the first of its others
//                    on whose network all the other nodes have an interface. Why not such a one at
//                    once, where they get to its own only by a gateway: that works as a rule, and
//                    networks that every node has may be containers' or tunnels.
//   any other node   the address that was given, if one was. Else that of its route there: the
//                    longest prefix, of such the smallest metric, of such the one by its training
//                    address's interface. The route's source address; if it has none, one of the
//                    interface's.
//
// A node with rank 0's own training address, or with that address on an interface, is on the same
// host and has the same. One that tells no routes (an agent of before), or not all of them and none
// of an own network that it is on, or whose route has no address of its own, keeps its training
// address, and that is taken to have a way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/ledger.h"

namespace muster::core {

class TrainingRoutes {
 public:
  TrainingRoutes(const Ledger& ledger, const v1::JobSpec& spec);
  ~TrainingRoutes();
  TrainingRoutes(const TrainingRoutes&) = delete;
  TrainingRoutes& operator=(const TrainingRoutes&) = delete;

  // No: it has one node, or names the interface.
  [[nodiscard]] bool matter() const { return matter_; }

  // Gives the nodes of a placement, rank 0's first, addresses and interfaces by the rule. False:
  // there is no such place to meet, and they stay as they are.
  [[nodiscard]] bool settle(std::vector<PlacedNode>& nodes);

  // Those of the candidates that count which could be in a job with rank 0 on `first`, itself among
  // them, at the first of its addresses that `enough` of them get to; else at the one that most do.
  // Search::Enough: it need not find more of them.
  enum class Search : std::uint8_t { Enough, All };
  struct ReachableSet {
    std::string address;  // of `first`
    std::vector<bool> in;
    std::size_t size = 0;
  };
  ReachableSet reachable(const std::vector<const NodeRecord*>& candidates, std::size_t first,
                         std::size_t enough, Search search,
                         const std::function<bool(std::size_t)>& counts);

 private:
  struct View;   // of a node's network
  struct Place;  // an address of rank 0's node
  struct Way;

  const View& view(const NodeRecord& node);
  static Place own_place(const NodeRecord& first);
  [[nodiscard]] std::vector<Place> others(const NodeRecord& first);
  std::optional<Way> way(const NodeRecord& node, const NodeRecord& first, const Place& place);
  bool settle_at(const Place& place, const NodeRecord& first, std::vector<PlacedNode>& nodes);

  const Ledger& ledger_;
  bool matter_;
  std::map<const NodeRecord*, std::unique_ptr<View>> views_;
};

// "has no route to 10.77.0.2, the training address of 'n0'".
std::string no_route_text(const TrainingRoutes::ReachableSet& reachable, const NodeRecord& first);
// What helps.
inline constexpr std::string_view kWhenTheyDoNotMeet =
    "; the nodes of a job need a way to its first one's training address: name the network "
    "interface that they share with network.interface, or start their "
    "agents with --address";

}  // namespace muster::core
