// Which of the candidates a job gets, and in which order: all or nothing. Pure; lives for one
// placement.
//
// The previous attempt's nodes keep their places (restart in place); others fill the gaps; only
// then come those that could not start it. A list of hosts, or a rank table of the user's own,
// keeps its order. Rank 0's node needs a port as well: where it has none left, the places are given
// anew. Of super-pods as few as can be take part (pod_plan.h), and the nodes of one stand together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/candidates.h"
#include "controller/core/host_ports.h"
#include "controller/core/pod_plan.h"

namespace muster::core {

class Gang {
 public:
  Gang(const Placing& placing, const Candidates& candidates, HostPorts& ports, std::size_t nodes);

  // On devices of the type that the candidates look at. Empty: there is none now.
  std::vector<PlacedNode> choose();
  // In the last choose(): a node would have done for rank 0, but for its port.
  [[nodiscard]] bool port_missed() const { return port_missed_; }
  // As well: but its host has no ports for so many nodes of the job.
  [[nodiscard]] bool host_full() const { return host_full_; }

  // Why nodes that would do each for itself cannot be taken out of their super-pods together: of
  // all that could if idle, or of those that fit now. Empty: they can, or nobody asks.
  enum class Of : std::uint8_t { Idle, IdleAndUsable, Now };
  [[nodiscard]] std::string pods_refuse(Of which);

 private:
  using Slots = std::vector<std::optional<PlacedNode>>;

  // Nothing: super-pods do not matter.
  std::optional<PodRule> pod_rule();
  // All of these devices of the candidate have an address of their own.
  [[nodiscard]] bool is_addressed(std::size_t at, const std::vector<std::uint32_t>& devices) const;
  template <class Able>
  // able(candidate) -> Fit; without `why`: it would do
  [[nodiscard]] std::vector<PodRoom> rooms(const Able& able) const;
  [[nodiscard]] std::vector<PodRoom> rooms_now(bool avoided_too) const;
  [[nodiscard]] PodPlan last_plan() const;
  // among the candidates
  [[nodiscard]] std::optional<std::size_t> place_of(const NodeName& node) const;

  std::vector<PlacedNode> choose_by(const PodPlan* plan);
  std::vector<PlacedNode> choose_by(const PodPlan* plan, bool in_place);
  void keep_places(Slots& slots, bool avoided);
  void fill_gaps(Slots& slots, bool avoided);
  bool put(Slots& slots, std::size_t slot, std::size_t at);
  void start_over(Slots& slots, const PodPlan* plan);
  void order(std::vector<PlacedNode>& nodes) const;

  const Placing& placing_;
  const Candidates& candidates_;
  HostPorts& ports_;
  const std::size_t nodes_needed_;
  // candidates by name; filled at first use
  mutable std::map<std::string_view, std::size_t> places_;
  std::string pods_type_;
  std::vector<std::string> pods_;  // beside the candidates: of that type
  std::set<NodeName> used_;
  std::map<std::string, std::size_t> on_host_;  // how many of them have an address
  std::size_t host_most_ = 0;                   // that it has ports for
  std::optional<PodPlan> left_;                 // of the plan that is followed
  bool table_ = false;                          // one is made, and there are super-pods
  // of the plan that is followed: a table over several super-pods
  bool addressed_only_ = false;
  bool port_missed_ = false, host_full_ = false;
};

}  // namespace muster::core
