#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <ranges>

#include "common/engine/engine.h"
#include "common/engine/ranktable/words.h"
#include "controller/core/device_health.h"
#include "controller/core/host_ports.h"
#include "controller/core/node_fit.h"
#include "controller/core/placing.h"
#include "controller/core/spec_view.h"
#include "controller/core/start_failures.h"
#include "controller/core/text.h"

namespace muster::core {
namespace {

constexpr std::size_t kReasonsMax = 6;  // nodes named in one `why`

bool is_loopback(std::string_view text) {
  const auto address = ranktable::parse_address(text);
  return address && ranktable::is_loopback(*address);
}

class Placer {
 public:
  Placer(const Taken& taken, const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now, const Limits& limits)
      : taken_(taken),
        ledger_(ledger),
        presence_(presence),
        job_(job),
        now_(now),
        limits_(limits),
        resources_(job.spec.resources()),
        ports_(taken, ledger, job, limits),
        avoided_(avoided_nodes(job, now, limits)) {}

  // A card that is bad, or in use by others, is no reason to refuse a job; but while it is, those behind the job need not wait for it.
  bool never_fits() {
    only_usable_ = true;
    return !ledger_.nodes.empty() && !never().empty();
  }

  PlaceResult run() {
    if (ledger_.nodes.empty()) return {.why = "no node is registered yet"};
    if (std::string missing = never(); !missing.empty()) return {.why = std::move(missing), .never = true};
    if (std::optional<PlaceResult> waits = lost_attempt()) return *std::move(waits);
    PlaceResult result;
    const auto all = candidates();
    routable_only_ = nodes_needed() > 1 && std::ranges::any_of(all, [&](const NodeRecord* node) { return !is_loopback(training_address(*node, job_.spec)); });
    result.nodes = choose_type();
    if (result.nodes.empty() && port_missed_ && fitting() >= nodes_needed()) return {.why = port_shortage()};
    if (result.nodes.empty()) return {.why = shortage(), .retry_at = only_pauses()};
    number_ranks(result.nodes, job_.spec);
    name_servers(result.nodes);
    const PlacedNode& first = result.nodes.front();
    result.master_port = ports_.master(first.node, first.address);
    if (result.master_port == 0) return {.why = port_shortage()};
    if (std::string why = give_blocks(result.nodes, result.master_port); !why.empty()) return {.why = std::move(why)};
    return result;
  }

 private:
  [[nodiscard]] std::size_t nodes_needed() const { return std::max<std::size_t>(1, resources_.nodes()); }
  [[nodiscard]] std::string need() const {
    std::string text = fmt::format("need {} node{} with ", nodes_needed(), nodes_needed() == 1 ? "" : "s");
    if (resources_.device_ids().empty()) {
      text += fmt::format("{} device{}", devices_needed(job_.spec), devices_needed(job_.spec) == 1 ? "" : "s");
    } else {
      text += fmt::format("devices {}", fmt::join(resources_.device_ids(), ","));
    }
    if (!resources_.type().empty() && resources_.type() != "auto") text += fmt::format(" of type '{}'", resources_.type());
    if (const std::string& interface = job_.spec.network().interface(); !interface.empty() && interface != "auto")
      text += fmt::format(" on interface '{}'", interface);
    for (const auto& [key, value] : std::map<std::string, std::string>(resources_.select().begin(), resources_.select().end())) {
      text += fmt::format(", label {}={}", key, value);
    }
    return text;
  }

  // The journal's end was lost, and with it an attempt of this very job that may still run on a node, and save. Nothing: none is known to. It holds nobody else
  // up.
  [[nodiscard]] std::optional<PlaceResult> lost_attempt() const {
    for (const auto& [name, seen] : presence_.nodes) {
      const auto lost = seen.unknown_runs.lower_bound({job_.id, AttemptNo(0)});
      if (lost == seen.unknown_runs.end() || lost->first != job_.id || ledger_.dead_nodes.contains(name)) continue;
      const BootTime over_at = std::max(seen.last_ack_sent, presence_.listening_since) + outlives_contact(job_.spec) + limits_.grace_margin;
      if (now_.boot >= over_at) continue;
      return PlaceResult{.why = fmt::format("'{}' {}", name.str(), unknown_run_text(*lost)), .retry_at = over_at};
    }
    return std::nullopt;
  }
  static std::string unknown_run_text(const AttemptKey& key) {
    return fmt::format("may still run attempt {} of job '{}', which this journal does not have: end its muster-worker there", key.second.value,
                       key.first.str());
  }

  // In the order of the spec's hosts, else by name.
  [[nodiscard]] std::vector<const NodeRecord*> candidates() const {
    std::vector<const NodeRecord*> found;
    if (resources_.hosts().empty()) {
      for (const auto& [name, node] : ledger_.nodes) found.push_back(&node);
    } else {
      for (const std::string& host : resources_.hosts()) {
        if (const auto node = ledger_.nodes.find(NodeName(host)); node != ledger_.nodes.end()) found.push_back(&node->second);
      }
    }
    return found;
  }

  [[nodiscard]] bool could_hold(const NodeRecord& node, std::string_view type) const {
    const Fit fit = capacity(node, job_.spec, type);
    const auto seen = presence_.nodes.find(node.name);
    if (!fit.why.empty() || !only_usable_ || seen == presence_.nodes.end()) return fit.why.empty();
    const auto usable = std::ranges::count_if(fit.devices, [&](std::uint32_t device) { return !unusable(seen->second, device); });
    return static_cast<std::size_t>(usable) >= devices_needed(job_.spec);
  }

  // What the node can give now.
  [[nodiscard]] Fit free(const NodeRecord& node) const {
    Fit fit = capacity(node, job_.spec, type_);
    if (!fit.why.empty()) return fit;
    const auto seen = presence_.nodes.find(node.name);
    if (is_silent(presence_, node.name, now_.boot, limits_.silent_after)) {
      return {.why = fmt::format("is silent for {}", age_text(now_.boot - last_word(presence_, node.name)))};
    }
    if (!is_connected(presence_, node.name)) return {.why = "is not connected"};
    if (const std::string address = training_address(node, job_.spec); routable_only_ && is_loopback(address)) {
      return {.why = fmt::format("has the training address {}, which other nodes cannot reach: start its agent with --address", address)};
    }
    if (seen->second.instance != node.instance) return {.why = "is just coming back with another state directory"};
    if (!seen->second.unknown_runs.empty()) return {.why = unknown_run_text(*seen->second.unknown_runs.begin())};
    if (awaits_look(node, seen->second)) return {.why = "has not said yet how its devices are"};
    if (const auto avoided = avoided_.find(node.name); avoided != avoided_.end() && avoided->second.retry_at && heed_pauses_) {
      return {.why = fmt::format("could not start attempt {} ({}) and is tried again in {}", avoided->second.attempt.value, to_string(avoided->second.why),
                                 age_text(*avoided->second.retry_at - now_.boot))};
    }
    const std::size_t all = fit.devices.size();
    const auto holders = ledger_.device_holders.find(node.name);
    std::string holder;
    std::erase_if(fit.devices, [&](std::uint32_t device) {
      if (taken_.devices.contains({node.name, device})) return true;
      if (std::optional<std::string> why = unusable(seen->second, device)) {
        if (holder.empty()) holder = *std::move(why);
        return true;
      }
      if (holders == ledger_.device_holders.end()) return false;
      const auto held = holders->second.find(device);
      if (held == holders->second.end()) return false;
      if (holder.empty()) holder = describe(held->second);
      return true;
    });
    if (fit.devices.size() < devices_needed(job_.spec)) {
      return {.why = fmt::format("has {} of {} devices free{}", fit.devices.size(), all, holder.empty() ? "" : " (" + holder + ")")};
    }
    fit.devices.resize(devices_needed(job_.spec));
    return fit;
  }
  [[nodiscard]] std::string describe(const AttemptKey& key) const {
    const auto job = ledger_.jobs.find(key.first);
    return job == ledger_.jobs.end() ? key.first.str() : fmt::format("'{}' attempt {}", job->second.spec.name(), key.second.value);
  }

  // Sets types_ and type_; the sentence when the registered nodes could not hold the job even if idle.
  std::string never() {
    const std::vector<const NodeRecord*> nodes = candidates();
    const bool any = resources_.type().empty() || resources_.type() == "auto";
    types_.clear();
    std::size_t most = 0;
    for (const std::string& type : types_to_try(nodes, job_.spec)) {
      // Of those that nobody asked for by name, the first that could ever do is the one that is waited for.
      if (any && !types_.empty()) break;
      const auto able = static_cast<std::size_t>(std::ranges::count_if(nodes, [&](const NodeRecord* node) { return could_hold(*node, type); }));
      if (able >= nodes_needed()) types_.push_back(type);
      if (type_.empty() || able > most) {
        type_ = type;
        most = able;
      }
    }
    if (!types_.empty()) {
      type_ = types_.front();
      return {};
    }
    std::vector<std::string> reasons;
    for (const std::string& host : resources_.hosts()) {
      if (!ledger_.nodes.contains(NodeName(host))) reasons.push_back(fmt::format("'{}' is not registered", host));
    }
    for (const NodeRecord* node : candidates()) {
      if (Fit fit = capacity(*node, job_.spec, type_); !fit.why.empty()) reasons.push_back(fmt::format("'{}' {}", node->name.str(), fit.why));
    }
    return fmt::format("{}; {} of {} registered node{} could do{}", need(), most, ledger_.nodes.size(), ledger_.nodes.size() == 1 ? "" : "s", list(reasons));
  }

  static std::string list(const std::vector<std::string>& reasons) {
    if (reasons.empty()) return {};
    std::string text = ": ";
    for (std::size_t at = 0; at < std::min(reasons.size(), kReasonsMax); ++at) text += (at == 0 ? "" : ", ") + reasons[at];
    if (reasons.size() > kReasonsMax) text += fmt::format(", and {} more", reasons.size() - kReasonsMax);
    return text;
  }

  // A gang has devices of one type: HCCL does not span two.
  std::vector<PlacedNode> choose_type() {
    for (const std::string& type : types_) {
      type_ = type;
      if (std::vector<PlacedNode> nodes = choose(); !nodes.empty()) return nodes;
    }
    type_ = types_.front();
    return types_.size() > 1 ? choose() : std::vector<PlacedNode>();  // whose ports are missed is said of the first
  }

  using Slots = std::vector<std::optional<PlacedNode>>;

  // The previous attempt's nodes keep their places (restart in place); others fill the gaps; only then come those that could not start it. A list of
  // hosts keeps its own order. Rank 0's node needs a port as well: where it has none left, the places are given anew.
  std::vector<PlacedNode> choose() {
    port_missed_ = false;
    std::vector<PlacedNode> nodes = choose(true);
    if (nodes.empty() && port_missed_) nodes = choose(false);
    return nodes;
  }
  std::vector<PlacedNode> choose(bool in_place) {
    Slots slots(nodes_needed());
    std::set<NodeName> used;
    if (in_place) keep_places(slots, used, false);
    if (!resources_.hosts().empty() && used.size() < slots.size()) {
      slots.assign(slots.size(), std::nullopt);
      used.clear();
    }
    fill_gaps(slots, used, false);
    if (!avoided_.empty() && used.size() < slots.size()) {
      if (in_place) keep_places(slots, used, true);
      fill_gaps(slots, used, true);
    }
    if (used.size() < slots.size()) return {};
    std::vector<PlacedNode> nodes;
    for (std::optional<PlacedNode>& slot : slots) nodes.push_back(*std::move(slot));
    if (!resources_.hosts().empty() && !avoided_.empty()) {
      std::ranges::sort(nodes, {}, [&](const PlacedNode& one) { return std::ranges::find(resources_.hosts(), one.node.str()) - resources_.hosts().begin(); });
    }
    return nodes;
  }
  void keep_places(Slots& slots, std::set<NodeName>& used, bool avoided) {
    const AttemptRecord* previous = job_.current();
    if (previous == nullptr || previous->parts.size() != slots.size()) return;
    for (std::size_t at = 0; at < slots.size(); ++at) {
      const NodeName& name = previous->parts[at].placed.node;
      const auto node = ledger_.nodes.find(name);
      if (slots[at] || node == ledger_.nodes.end() || used.contains(name) || avoided_.contains(name) != avoided) continue;
      put(slots, at, used, node->second);
    }
  }
  void fill_gaps(Slots& slots, std::set<NodeName>& used, bool avoided) {
    const auto gap = [&](std::size_t from) {
      while (from < slots.size() && slots[from]) ++from;
      return from;
    };
    const std::vector<const NodeRecord*> all = candidates();
    std::size_t at = gap(0);
    auto node = all.begin();
    const auto fill_one = [&] { return !used.contains((*node)->name) && avoided_.contains((*node)->name) == avoided && put(slots, at, used, **node); };
    for (; at == 0 && node != all.end(); ++node) {
      if (fill_one()) at = gap(at);
    }
    // Those before it had no port, which others' ranks do not need; but hosts that the spec names stay in their order. None at all: one of those that could not
    // start it may still have a port.
    if (at == 0 || resources_.hosts().empty()) node = all.begin();
    if (at == 0) at = gap(1);
    for (; at < slots.size() && node != all.end(); ++node) {
      if (fill_one()) at = gap(at);
    }
  }
  bool put(Slots& slots, std::size_t at, std::set<NodeName>& used, const NodeRecord& node) {
    Fit fit = free(node);
    if (!fit.why.empty()) return false;
    if (at == 0 && ports_.master(node.name, training_address(node, job_.spec)) == 0) {
      port_missed_ = true;
      return false;
    }
    slots[at] = pinned(node, job_.spec, type_, std::move(fit.devices));
    used.insert(node.name);
    return true;
  }

  // When the first pause is over, if it would fit but for pauses.
  [[nodiscard]] std::optional<BootTime> only_pauses() {
    std::optional<BootTime> first;
    for (const auto& [node, one] : avoided_) {
      if (one.retry_at && (!first || *one.retry_at < *first)) first = one.retry_at;
    }
    if (!first) return std::nullopt;
    heed_pauses_ = false;
    const bool fits = !choose().empty();
    heed_pauses_ = true;
    return fits ? first : std::nullopt;
  }

  [[nodiscard]] std::size_t fitting() const {
    return static_cast<std::size_t>(std::ranges::count_if(candidates(), [&](const NodeRecord* node) { return free(*node).why.empty(); }));
  }
  [[nodiscard]] std::string shortage() const {
    std::vector<std::string> reasons;
    for (const NodeRecord* node : candidates()) {
      if (Fit fit = free(*node); !fit.why.empty()) reasons.push_back(fmt::format("'{}' {}", node->name.str(), fit.why));
    }
    return fmt::format("{}, {} fit{}", need(), fitting(), list(reasons));
  }

  // Ports for HCCL on every host that runs ranks on Ascend devices; the sentence where one has none left. The same on all hosts, because a rank works out its
  // peers' ports from its own base (HCCL: op_retry_connection.cc, heartbeat.cc); only nodes that share an address must have different ones.
  std::string give_blocks(std::vector<PlacedNode>& nodes, std::uint16_t master_port) {
    if (!engine::is_ascend(type_) || !engine::wants_hccl_port(job_.spec) || !ports_.has_blocks()) return {};
    std::map<std::string, std::vector<std::uint16_t>> given;  // by address
    std::map<std::size_t, std::vector<PlacedNode*>> turns;    // the first node of every address, the second ...
    std::map<std::string, std::size_t> turn;
    for (PlacedNode& node : nodes) {
      if (node.rank_count > 0) turns[turn[node.address]++].push_back(&node);
    }
    for (auto& [_, group] : turns) {
      std::vector<HostPorts::Wanted> hosts;
      for (const PlacedNode* node : group) {
        hosts.push_back({.node = node->node,
                         .address = node->address,
                         .master_port = node->address == nodes.front().address ? master_port : std::uint16_t{0},
                         .given = given[node->address]});
      }
      const std::uint16_t first = ports_.block(hosts);
      if (first == 0) {
        std::vector<std::string> names;
        for (const PlacedNode* node : group | std::views::take(kReasonsMax)) names.push_back(fmt::format("'{}'", node->node.str()));
        if (names.size() == 1)
          return fmt::format("{} has no {} ports of {}-{} in a row free for HCCL; give the controller a wider range", names.front(), engine::kHcclPorts,
                             limits_.port_first, limits_.port_last);
        return fmt::format("{}{} have no {} ports of {}-{} in a row free for HCCL, the same on every host; give the controller a wider range",
                           fmt::join(names, ", "), group.size() > kReasonsMax ? fmt::format(" and {} more", group.size() - kReasonsMax) : "",
                           engine::kHcclPorts, limits_.port_first, limits_.port_last);
      }
      for (PlacedNode* node : group) {
        node->hccl_port = first;
        given[node->address].push_back(first);
      }
    }
    return {};
  }

  // Of the nodes that could run rank 0 but for that.
  [[nodiscard]] std::string port_shortage() {
    std::vector<std::string> reasons;
    const std::uint32_t fixed = job_.spec.network().master_port();
    for (const NodeRecord* node : candidates()) {
      const std::string address = training_address(*node, job_.spec);
      if (!free(*node).why.empty() || ports_.master(node->name, address) != 0) continue;
      const auto held = ledger_.ports_held.find({address, static_cast<std::uint16_t>(fixed)});
      const std::string holder = held == ledger_.ports_held.end() ? "another job" : describe(held->second);
      reasons.push_back(fixed == 0 ? fmt::format("'{}'", node->name.str()) : fmt::format("on '{}' it is used by {}", node->name.str(), holder));
    }
    if (fixed != 0) return fmt::format("no node that fits has network.master_port {} free{}", fixed, list(reasons));
    return fmt::format("no node that fits has a port of {}-{} free{}; give the controller a wider range", limits_.port_first, limits_.port_last, list(reasons));
  }

  const Taken& taken_;
  const Ledger& ledger_;
  const Presence& presence_;
  const JobRecord& job_;
  Now now_;
  const Limits& limits_;
  const v1::ResourceSpec& resources_;
  HostPorts ports_;
  const std::map<NodeName, AvoidedNode> avoided_;
  bool heed_pauses_ = true;
  bool only_usable_ = false;
  bool routable_only_ = false;      // a gang over several nodes, of which some have an address that is not this host's alone
  bool port_missed_ = false;        // in the last choose(): a node would have done for rank 0, but for its port
  std::vector<std::string> types_;  // that could hold the job if they were idle
  std::string type_;                // the one that is looked at
};

}  // namespace

void Taken::take(const PlaceResult& placed) {
  for (const PlacedNode& node : placed.nodes) {
    for (const std::uint32_t device : node.devices) devices.insert({node.node, device});
    if (node.hccl_port != 0) blocks[node.node].push_back(node.hccl_port);
  }
  if (!placed.nodes.empty()) ports.insert({placed.nodes.front().address, placed.master_port});
}

std::string demands_of(const v1::JobSpec& spec) {
  std::string demands;
  for (const std::string_view feature : engine::features_needed(spec)) demands.append(feature).push_back(' ');
  demands += spec.network().interface();
  demands.push_back('\0');
  google::protobuf::io::StringOutputStream stream(&demands);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);  // the labels of `select` are a map, whose order is otherwise any
  spec.resources().SerializeToCodedStream(&coded);
  coded.Trim();
  return demands;
}

void number_ranks(std::vector<PlacedNode>& nodes, const v1::JobSpec& spec) {
  const bool once = spec.launch().per() == v1::LAUNCH_PER_ONCE;
  std::uint32_t next = 0;
  for (PlacedNode& node : nodes) {
    node.first_rank = RankNo(next);
    node.rank_count = once ? (next == 0 ? 1 : 0) : static_cast<std::uint32_t>(node.devices.size());
    next += node.rank_count;
  }
}

PlaceResult place_beside(const Taken& taken, const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now, const Limits& limits) {
  return Placer(taken, ledger, presence, job, now, limits).run();
}

bool never_fits(const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now, const Limits& limits) {
  const Taken nothing;
  return Placer(nothing, ledger, presence, job, now, limits).never_fits();
}

PlaceResult place(const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now, const Limits& limits) {
  return place_beside(Taken{}, ledger, presence, job, now, limits);
}

}  // namespace muster::core
