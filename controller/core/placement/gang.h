// Chooses which of the candidates a job gets, and in which order: all or nothing. Placer (place.cc)
// owns one for each placement. Pure.
//
// - The nodes of the previous attempt keep their positions (restart in place). Others fill the
//   gaps. Nodes that could not start the job come last.
// - A list of hosts, or the user's own rank table, keeps its order.
// - Rank 0's node also needs a port. If it has none left, all positions are given anew.
// - As few super-pods as possible take part (pod_plan.h). The nodes of one super-pod are
//   neighbours.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/placement/candidates.h"
#include "controller/core/placement/host_ports.h"
#include "controller/core/placement/pod_plan.h"

namespace muster::core {

class Gang {
 public:
  Gang(const Placing& placing, const Candidates& candidates, HostPorts& ports, std::size_t nodes);

  // Uses devices of the candidates' current type. Empty: no gang fits now.
  std::vector<PlacedNode> choose();
  // In the last choose(), some node could not run rank 0 only because it had no port.
  [[nodiscard]] bool port_missed() const { return port_missed_; }
  // In the last choose(), some host had no ports for so many nodes of the job.
  [[nodiscard]] bool host_full() const { return host_full_; }

  // Why nodes that each fit cannot be taken together out of their super-pods. `which` selects the
  // nodes: all that fit if idle, those with usable devices, or those that fit now. Empty: they can,
  // or no rule about super-pods applies.
  enum class Of : std::uint8_t { Idle, IdleAndUsable, Now };
  [[nodiscard]] std::string pods_refuse(Of which);

 private:
  using Slots = std::vector<std::optional<PlacedNode>>;

  // Nothing: super-pods do not matter.
  std::optional<PodRule> pod_rule();
  // Whether all these devices of the candidate have their own address.
  [[nodiscard]] bool is_addressed(std::size_t at, const std::vector<std::uint32_t>& devices) const;
  template <class Able>
  // able(candidate) -> Fit; an empty `why` means that the candidate fits.
  [[nodiscard]] std::vector<PodRoom> rooms(const Able& able) const;
  [[nodiscard]] std::vector<PodRoom> rooms_now(bool avoided_too) const;
  [[nodiscard]] PodPlan last_plan() const;
  // Among the candidates.
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
  // Candidates by name; filled at the first use.
  mutable std::map<std::string_view, std::size_t> places_;
  std::string pods_type_;
  std::vector<std::string> pods_;  // parallel to the candidates, for that type
  std::set<NodeName> used_;
  std::map<std::string, std::size_t> on_host_;  // by address: how many used nodes have it
  std::size_t host_most_ = 0;                   // how many nodes one host has ports for
  std::optional<PodPlan> left_;                 // rest of the plan in use
  bool table_ = false;                          // muster makes one, and there are super-pods
  // The plan in use is for a table over several super-pods.
  bool addressed_only_ = false;
  bool port_missed_ = false, host_full_ = false;
};

}  // namespace muster::core
