#include "controller/core/placement/gang.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/ascend/hccl_cards.h"
#include "common/engine/ascend/table_plan.h"

namespace muster::core {
namespace {

constexpr std::size_t kPodsNamed = 6;

std::size_t first_gap(const std::vector<std::optional<PlacedNode>>& slots, std::size_t from) {
  while (from < slots.size() && slots[from]) ++from;
  return from;
}

}  // namespace

Gang::Gang(const Placing& placing, const Candidates& candidates, HostPorts& ports,
           std::size_t nodes)
    : placing_(placing), candidates_(candidates), ports_(ports), nodes_needed_(nodes) {}

std::optional<std::size_t> Gang::place_of(const NodeName& node) const {
  if (places_.empty()) {
    for (std::size_t at = 0; at < candidates_.nodes().size(); ++at)
      places_.emplace(candidates_.nodes()[at]->name.str(), at);
  }
  const auto found = places_.find(node.str());
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<PodRule> Gang::pod_rule() {
  const v1::JobSpec& spec = placing_.job.spec;
  if (nodes_needed_ < 2 || candidates_.own_table() != nullptr || !engine::is_hccl_group(spec))
    return std::nullopt;
  if (pods_type_ != candidates_.type()) {
    pods_type_ = candidates_.type();
    pods_.clear();
    for (const NodeRecord* node : candidates_.nodes()) pods_.push_back(pod_of(*node, pods_type_));
  }
  if (std::ranges::all_of(pods_, [](const std::string& pod) { return pod.empty(); }))
    return std::nullopt;
  return engine::makes_rank_table(spec) ? PodRule::Table : PodRule::Prefer;
}

bool Gang::is_addressed(std::size_t at, const std::vector<std::uint32_t>& devices) const {
  return count_addressed(*candidates_.nodes()[at], pods_type_, devices) == devices.size();
}

template <class Able>
std::vector<PodRoom> Gang::rooms(const Able& able) const {
  std::map<std::string_view, PodRoom> found;
  for (std::size_t at = 0; at < pods_.size(); ++at) {
    const Fit& fit = able(at);
    if (!fit.why.empty()) continue;
    PodRoom& room = found.try_emplace(pods_[at], PodRoom{.id = pods_[at]}).first->second;
    ++room.nodes;
    if (is_addressed(at, fit.devices)) ++room.addressed;
  }
  std::vector<PodRoom> all;
  for (auto& [_, room] : found) all.push_back(std::move(room));
  return all;
}

std::vector<PodRoom> Gang::rooms_now(bool avoided_too) const {
  static const Fit kLeftAlone{.why = "is left alone"};
  return rooms([&](std::size_t at) -> const Fit& {
    return avoided_too || !candidates_.is_avoided(at) ? candidates_.free(at) : kLeftAlone;
  });
}

PodPlan Gang::last_plan() const {
  PodPlan plan;
  const AttemptRecord* last = placing_.job.current();
  if (last == nullptr) return plan;
  for (const NodePart& part : last->parts) {
    if (const auto place = place_of(part.placed.node)) ++plan[pods_[*place]];
  }
  return plan;
}

std::string Gang::pods_refuse(Of which) {
  const auto rule = pod_rule();
  if (rule != PodRule::Table) return {};
  Fit fit;
  const auto idle = [&](std::size_t at) -> const Fit& {
    fit = {.devices = candidates_.could_give(at, which == Of::IdleAndUsable)};
    if (fit.devices.empty()) fit.why = "is too small, or has cards that cannot be used";
    return fit;
  };
  const std::vector<PodRoom> all = which == Of::Now ? rooms_now(true) : rooms(idle);
  if (!pod_plans(all, nodes_needed_, *rule, {}).empty()) return {};
  std::string text;
  bool addressed = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    addressed = addressed && all[i].addressed == all[i].nodes;
    if (i == kPodsNamed) text += fmt::format(" and {} more", all.size() - kPodsNamed);
    if (i < kPodsNamed)
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", all[i].nodes,
                          all[i].id.empty() ? "in none" : fmt::format("in '{}'", all[i].id));
  }
  return fmt::format("a rank table takes as many nodes out of every super-pod{}, and there are {}",
                     addressed ? "" : " (out of several only such whose cards have addresses)",
                     text);
}

std::vector<PlacedNode> Gang::choose() {
  port_missed_ = host_full_ = false;
  const bool one_runs = placing_.job.spec.launch().per() == v1::LAUNCH_PER_ONCE;
  host_most_ =
      !one_runs && ports_.needs_blocks(candidates_.type()) ? ports_.nodes_a_host() : nodes_needed_;
  const auto rule = pod_rule();
  table_ = rule == PodRule::Table;
  addressed_only_ = false;
  if (!rule) return choose_by(nullptr);
  const PodPlan last = last_plan();
  for (const bool avoided_too : {false, true}) {
    if (avoided_too && candidates_.avoided().empty()) break;
    for (const PodPlan& plan : pod_plans(rooms_now(avoided_too), nodes_needed_, *rule, last)) {
      addressed_only_ = *rule == PodRule::Table && plan.size() > 1;
      if (std::vector<PlacedNode> nodes = choose_by(&plan); !nodes.empty()) return nodes;
    }
  }
  addressed_only_ = false;
  return *rule == PodRule::Prefer ? choose_by(nullptr) : std::vector<PlacedNode>();
}

std::vector<PlacedNode> Gang::choose_by(const PodPlan* plan) {
  const bool missed = port_missed_;
  port_missed_ = false;
  std::vector<PlacedNode> nodes = choose_by(plan, true);
  if (nodes.empty() && port_missed_) nodes = choose_by(plan, false);
  port_missed_ = port_missed_ || missed;
  return nodes;
}

void Gang::start_over(Slots& slots, const PodPlan* plan) {
  slots.assign(nodes_needed_, std::nullopt);
  used_.clear();
  on_host_.clear();
  left_.reset();
  if (plan != nullptr) left_ = *plan;
}

std::vector<PlacedNode> Gang::choose_by(const PodPlan* plan, bool in_place) {
  Slots slots;
  start_over(slots, plan);
  if (in_place) keep_places(slots, false);
  if (candidates_.in_order() && used_.size() < slots.size()) start_over(slots, plan);
  fill_gaps(slots, false);
  if (!candidates_.avoided().empty() && used_.size() < slots.size()) {
    if (in_place) keep_places(slots, true);
    fill_gaps(slots, true);
  }
  if (used_.size() < slots.size()) return {};
  std::vector<PlacedNode> nodes;
  for (std::optional<PlacedNode>& slot : slots) nodes.push_back(*std::move(slot));
  order(nodes);
  return nodes;
}

void Gang::order(std::vector<PlacedNode>& nodes) const {
  if (candidates_.in_order()) {
    std::ranges::sort(nodes, {}, [&](const PlacedNode& one) { return *place_of(one.node); });
    // HCCL reads the servers of a super-pod as neighbours, whatever order the spec has.
    if (!table_) return;
  }
  if (!left_) return;
  // Super-pods in the order of their first nodes, so that rank 0 stays where it is.
  std::map<std::string_view, std::size_t> pods;
  for (const PlacedNode& one : nodes) pods.try_emplace(pods_[*place_of(one.node)], pods.size());
  std::ranges::stable_sort(
      nodes, {}, [&](const PlacedNode& one) { return pods.at(pods_[*place_of(one.node)]); });
}

void Gang::keep_places(Slots& slots, bool avoided) {
  const AttemptRecord* previous = placing_.job.current();
  if (previous == nullptr || previous->parts.size() != slots.size()) return;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const NodeName& name = previous->parts[slot].placed.node;
    const auto place = place_of(name);
    if (slots[slot] || !place || used_.contains(name) || candidates_.is_avoided(*place) != avoided)
      continue;
    put(slots, slot, *place);
  }
}

void Gang::fill_gaps(Slots& slots, bool avoided) {
  const std::size_t count = candidates_.nodes().size();
  std::size_t slot = first_gap(slots, 0), at = 0;
  const auto fill_one = [&] {
    return !used_.contains(candidates_.nodes()[at]->name) &&
           candidates_.is_avoided(at) == avoided && put(slots, slot, at);
  };
  for (; slot == 0 && at < count; ++at) {
    if (fill_one()) slot = first_gap(slots, slot);
  }
  // The nodes before this one had no port, but other ranks need none. Hosts that the spec names
  // stay in their order. If no node has a port, one of those that could not start the job may still
  // have one.
  if (slot == 0 || !candidates_.in_order()) at = 0;
  if (slot == 0) slot = first_gap(slots, 1);
  for (; slot < slots.size() && at < count; ++at) {
    if (fill_one()) slot = first_gap(slots, slot);
  }
}

bool Gang::put(Slots& slots, std::size_t slot, std::size_t at) {
  const NodeRecord& node = *candidates_.nodes()[at];
  if (left_) {
    const auto left = left_->find(pods_[at]);
    if (left == left_->end() || left->second == 0) return false;
  }
  const Fit& fit = candidates_.free(at);
  if (!fit.why.empty() || (addressed_only_ && !is_addressed(at, fit.devices))) return false;
  const std::string address = training_address(node, placing_.job.spec);
  std::size_t& on_host = on_host_[address];
  if (on_host >= host_most_) {
    host_full_ = true;
    return false;
  }
  if (slot == 0 && ports_.master(node.name, address) == 0) {
    port_missed_ = true;
    return false;
  }
  ++on_host;
  slots[slot] = pinned(node, placing_.job.spec, candidates_.type(), fit.devices);
  used_.insert(node.name);
  if (left_) --left_->at(pods_[at]);
  return true;
}

}  // namespace muster::core
