#include "controller/core/placement/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "common/engine/model/engine.h"
#include "controller/core/placement/candidates.h"
#include "controller/core/placement/gang.h"
#include "controller/core/placement/hccl_blocks.h"
#include "controller/core/placement/host_ports.h"
#include "controller/core/placement/one_storage.h"
#include "controller/core/placement/place_why.h"
#include "controller/core/placement/placing.h"
#include "controller/core/placement/training_route.h"

namespace muster::core {
namespace {

constexpr std::size_t kReachableSetsTried = 64;  // networks that are separate from each other
constexpr std::size_t kStoragesTried = 64;       // those of most candidates

class Placer {
 public:
  explicit Placer(const Placing& placing)
      : placing_(placing),
        ports_(placing.taken, placing.ledger, placing.job, placing.limits),
        candidates_(placing),
        routes_(placing.ledger, placing.job.spec),
        storage_(placing, candidates_.nodes()),
        gang_(placing, candidates_, ports_, nodes_needed()) {}

  // A card that is bad, or in use by others, is no reason to refuse a job, and neither is a node
  // that drains. But in the meantime the jobs behind it need not wait for it.
  bool never_fits() {
    only_usable_ = true;
    return !placing_.ledger.nodes.empty() && !never().empty();
  }

  PlaceResult run() {
    if (placing_.ledger.nodes.empty()) return {.why = "no node is registered yet"};
    if (std::string missing = never(); !missing.empty())
      return {.why = std::move(missing), .never = true};
    if (std::optional<PlaceResult> waits = waits_for_lost_attempt(placing_))
      return *std::move(waits);
    if (std::optional<PlaceResult> waits = backs_off(placing_)) return *std::move(waits);
    if (std::optional<PlaceResult> waits = waits_for_secret(placing_)) return *std::move(waits);
    if (nodes_needed() > 1) candidates_.only_routable();
    PlaceResult result;
    result.nodes = choose_type();
    if (result.nodes.empty() && gang_.port_missed() && fitting() >= nodes_needed())
      return {.why = port_shortage_text(placing_, candidates_, ports_)};
    if (result.nodes.empty()) return {.why = shortage(), .retry_at = only_pauses()};
    number_ranks(result.nodes, placing_.job.spec);
    name_servers(result.nodes);
    if (const OwnTable* own = candidates_.own_table()) {
      for (std::size_t at = 0; at < result.nodes.size(); ++at)
        result.nodes[at].server_id = own->table.servers[own->order[at].server].server_id;
    }
    const PlacedNode& first = result.nodes.front();
    // The blocks come first: a small range has few of them, and any single port may be in one.
    const bool blocks = ports_.needs_blocks(candidates_.type());
    const auto fixed = static_cast<std::uint16_t>(placing_.job.spec.network().master_port());
    if (blocks) {
      if (std::string why = give_blocks(ports_, placing_.limits, result.nodes, fixed); !why.empty())
        return {.why = std::move(why)};
    }
    result.master_port =
        ports_.master(first.node, first.address, blocks_of_first_host(result.nodes));
    if (result.master_port != 0) return result;
    return {.why = blocks ? no_master_port_text(first.node, placing_.limits)
                          : port_shortage_text(placing_, candidates_, ports_)};
  }

 private:
  [[nodiscard]] std::size_t nodes_needed() const {
    return std::max<std::size_t>(1, placing_.job.spec.resources().nodes());
  }

  // Sets able_.
  std::size_t able() {
    able_.resize(candidates_.nodes().size());
    for (std::size_t at = 0; at < able_.size(); ++at)
      able_[at] = candidates_.could_hold(at, only_usable_);
    return static_cast<std::size_t>(std::ranges::count(able_, true));
  }
  [[nodiscard]] std::size_t fitting() const {
    std::size_t count = 0;
    for (std::size_t at = 0; at < candidates_.nodes().size(); ++at)
      count += candidates_.free(at).why.empty() ? 1 : 0;
    return count;
  }

  // Sets types_. Returns a sentence if the registered nodes could not hold the job even if they
  // were idle.
  std::string never() {
    if (!candidates_.missing().empty()) return candidates_.missing();
    const std::string& asked = placing_.job.spec.resources().type();
    const bool any = asked.empty() || asked == "auto";
    types_.clear();
    std::string best;  // the type that fits on most nodes
    std::size_t most = 0;
    for (const std::string& type : types_to_try(candidates_.nodes(), placing_.job.spec)) {
      // If the spec names no type, the job waits for the first type that could ever fit.
      if (any && !types_.empty()) break;
      candidates_.consider(type);
      const std::size_t count = able();
      if (best.empty() || count > most) {
        best = type;
        most = count;
      }
      if (count >= nodes_needed() && pods_refuse_idle().empty() && table_refuses().empty() &&
          ports_refuse().empty() && routes_refuse().empty() && storage_refuses().empty())
        types_.push_back(type);
    }
    candidates_.consider(types_.empty() ? best : types_.front());
    if (!types_.empty()) return {};
    if (most >= nodes_needed()) {
      able();
      if (std::string refused = table_refuses(); !refused.empty())
        return fmt::format("{}; {}", need_text(placing_, candidates_), refused);
      if (std::string refused = ports_refuse(); !refused.empty())
        return fmt::format("{}; {}", need_text(placing_, candidates_), refused);
      if (std::string refused = routes_refuse(); !refused.empty())
        return fmt::format("{}; {}", need_text(placing_, candidates_), refused);
      if (std::string refused = storage_refuses(); !refused.empty())
        return fmt::format("{}; {}", need_text(placing_, candidates_), refused);
    }
    return never_text(placing_, candidates_, most,
                      most >= nodes_needed() ? pods_refuse_idle() : std::string());
  }
  [[nodiscard]] std::string storage_refuses() const {
    return storage_.refuses(able_, nodes_needed());
  }
  std::string pods_refuse_idle() {
    return gang_.pods_refuse(only_usable_ ? Gang::Of::IdleAndUsable : Gang::Of::Idle);
  }
  [[nodiscard]] std::string table_refuses() const {
    const OwnTable* own = candidates_.own_table();
    return own == nullptr ? std::string()
                          : table_refusal(*own, candidates_.nodes(), candidates_.type());
  }

  [[nodiscard]] std::string ports_refuse() const {
    if (!ports_.needs_blocks(candidates_.type())) return {};
    std::map<std::string, std::size_t> able;
    for (std::size_t at = 0; at < candidates_.nodes().size(); ++at) {
      if (candidates_.could_hold(at, only_usable_))
        ++able[training_address(*candidates_.nodes()[at], placing_.job.spec)];
    }
    return range_refuses(ports_, placing_, able);
  }

  // A gang has devices of one type, because HCCL does not work across two types.
  std::vector<PlacedNode> choose_type() {
    for (const std::string& type : types_) {
      candidates_.consider(type);
      if (std::vector<PlacedNode> nodes = choose_storage(); !nodes.empty()) return nodes;
    }
    candidates_.consider(types_.front());
    // The result of port_missed() must be about the first type.
    return types_.size() > 1 ? choose_storage() : std::vector<PlacedNode>();
  }

  // A gang whose nodes share a storage. Without one, the reasons are about the storage that is
  // tried first.
  std::vector<PlacedNode> choose_storage() {
    if (!storage_.matters()) return choose_meeting();
    const auto& storages = storage_.storages();
    for (const std::string& storage : storages | std::views::take(kStoragesTried)) {
      candidates_.only_storage(storage_.reasons(storage));
      if (std::vector<PlacedNode> nodes = choose_meeting(); !nodes.empty()) return nodes;
    }
    candidates_.only_storage(storage_.reasons(storage_.storages().front()));
    return choose_meeting();
  }

  // The nodes that a job with this rank 0 may have in addition, because of their routes. If the
  // order of nodes is given, they come behind rank 0's node.
  TrainingRoutes::ReachableSet reachable_set_of(std::size_t first, const std::vector<bool>& among,
                                                TrainingRoutes::Search search) {
    return routes_.reachable(
        candidates_.nodes(), first, nodes_needed(), search,
        [&](std::size_t at) { return among[at] && !(candidates_.in_order() && at < first); });
  }
  // Excludes nodes after a reachable set was too small. If the order is given, only rank 0's
  // candidate is excluded. Otherwise the other nodes on its network are excluded too, because they
  // fare no better.
  void drop_reachable(std::vector<bool>& among, std::size_t first,
                      const TrainingRoutes::ReachableSet& reachable) const {
    among[first] = false;
    for (std::size_t at = 0; at < among.size() && !candidates_.in_order(); ++at)
      among[at] = among[at] && !reachable.in[at];
  }
  void leave_out_all_but(const std::vector<bool>& in, const TrainingRoutes::ReachableSet& reachable,
                         std::size_t first) {
    std::vector<std::string> reasons(in.size());
    for (std::size_t at = 0; at < in.size(); ++at) {
      if (!in[at]) reasons[at] = no_route_text(reachable, *candidates_.nodes()[first]);
    }
    candidates_.leave_out(std::move(reasons));
  }

  // Why the nodes that fit on their own (able_) do not meet. Empty: as many as needed do.
  std::string routes_refuse() {
    if (!routes_.matter()) return {};
    std::vector<bool> among = able_;
    std::string why;
    for (std::size_t tried = 0; tried < kReachableSetsTried; ++tried) {
      const auto found = std::ranges::find(among, true);
      if (found == among.end()) return why;
      const auto first = static_cast<std::size_t>(found - among.begin());
      const TrainingRoutes::ReachableSet reachable =
          reachable_set_of(first, among, TrainingRoutes::Search::Enough);
      if (reachable.size >= nodes_needed()) return {};
      if (why.empty()) why = apart_text(candidates_, among, reachable, first);
      drop_reachable(among, first, reachable);
    }
    return why;  // a placement would find no more, and wait at the queue's head for ever
  }

  // A gang whose nodes have a route to rank 0's node. Usually the first choice has one. Otherwise
  // the nodes without a route to that rank 0 are left out. If too few nodes are left, its whole
  // network is left out.
  std::vector<PlacedNode> choose_meeting() {
    candidates_.leave_out({});
    std::vector<PlacedNode> nodes = gang_.choose();
    if (nodes.empty() || routes_.settle(nodes)) return nodes;
    const std::size_t count = candidates_.nodes().size();
    std::vector<bool> among(count);
    for (std::size_t at = 0; at < count; ++at) among[at] = candidates_.free(at).why.empty();
    std::optional<TrainingRoutes::ReachableSet> explained;
    std::size_t explained_first = 0;
    for (std::size_t tried = 0; tried < kReachableSetsTried && !nodes.empty(); ++tried) {
      const std::size_t first = place_of(nodes.front().node);
      const TrainingRoutes::ReachableSet reachable =
          reachable_set_of(first, among, TrainingRoutes::Search::All);
      if (!explained) explained = reachable, explained_first = first;
      if (reachable.size >= nodes_needed()) {
        leave_out_all_but(reachable.in, reachable, first);
        nodes = gang_.choose();
        if (!nodes.empty() && routes_.settle(nodes)) return nodes;
      }
      drop_reachable(among, first, reachable);
      leave_out_all_but(among, reachable, first);
      nodes = gang_.choose();
      if (!nodes.empty() && routes_.settle(nodes)) return nodes;
    }
    leave_out_all_but(explained->in, *explained, explained_first);
    return {};
  }
  [[nodiscard]] std::size_t place_of(const NodeName& node) const {
    return static_cast<std::size_t>(
        std::ranges::find(candidates_.nodes(), node, &NodeRecord::name) -
        candidates_.nodes().begin());
  }

  std::string shortage() {
    const std::size_t count = fitting();
    std::string refused =
        count >= nodes_needed() ? gang_.pods_refuse(Gang::Of::Now) : std::string();
    if (refused.empty() && count >= nodes_needed() && gang_.host_full())
      refused = fmt::format(
          "one host has ports for {} of the job's nodes in the controller's --port-range {}-{}",
          ports_.nodes_a_host(), placing_.limits.port_first, placing_.limits.port_last);
    if (refused.empty() && candidates_.leaves_some_out()) refused = kWhenTheyDoNotMeet.substr(2);
    return shortage_text(placing_, candidates_, count, refused);
  }

  // When the first pause ends, if the job would fit without the pauses.
  std::optional<BootTime> only_pauses() {
    std::optional<BootTime> first;
    for (const auto& [node, one] : candidates_.avoided()) {
      if (one.retry_at && (!first || *one.retry_at < *first)) first = one.retry_at;
    }
    if (!first) return std::nullopt;
    candidates_.heed_pauses(false);
    const bool fits = !choose_storage().empty();
    candidates_.heed_pauses(true);
    return fits ? first : std::nullopt;
  }

  const Placing& placing_;
  HostPorts ports_;
  Candidates candidates_;
  TrainingRoutes routes_;
  OneStorage storage_;
  Gang gang_;
  bool only_usable_ = false;
  // The candidates that could hold a part of the job with such devices, if they were idle.
  std::vector<bool> able_;
  std::vector<std::string> types_;  // types that could hold the job if the nodes were idle
};

}  // namespace

void Taken::take(const PlaceResult& placed) {
  for (const PlacedNode& node : placed.nodes) {
    for (const std::uint32_t device : node.devices) devices.insert({node.node, device});
    if (node.hccl_port != 0) blocks[node.node].push_back(node.hccl_port);
  }
  if (!placed.nodes.empty()) ports.insert({placed.nodes.front().address, placed.master_port});
}

PlaceResult place_around(const Taken& taken, const Ledger& ledger, const Presence& presence,
                         const JobRecord& job, Now now, const Limits& limits, std::size_t* checks) {
  const Placing placing{.taken = taken,
                        .ledger = ledger,
                        .presence = presence,
                        .job = job,
                        .now = now,
                        .limits = limits,
                        .checks = checks};
  return Placer(placing).run();
}

bool never_fits(const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now,
                const Limits& limits, std::size_t* checks) {
  const Taken nothing;
  const Placing placing{.taken = nothing,
                        .ledger = ledger,
                        .presence = presence,
                        .job = job,
                        .now = now,
                        .limits = limits,
                        .checks = checks};
  return Placer(placing).never_fits();
}

PlaceResult place(const Ledger& ledger, const Presence& presence, const JobRecord& job, Now now,
                  const Limits& limits) {
  return place_around(Taken{}, ledger, presence, job, now, limits);
}

}  // namespace muster::core
