#include "controller/core/placement/place_why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/engine/ranktable/words.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/model/text.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/next_attempt.h"
#include "controller/core/secrets/secrets.h"
#include "controller/core/stores/stores.h"

namespace muster::core {
namespace {

constexpr std::size_t kReasonsMax = 6;  // nodes named in one `why`

std::string reasons_text(const std::vector<std::string>& reasons) {
  if (reasons.empty()) return {};
  std::string text = ": ";
  for (std::size_t at = 0; at < std::min(reasons.size(), kReasonsMax); ++at)
    text += (at == 0 ? "" : ", ") + reasons[at];
  if (reasons.size() > kReasonsMax)
    text += fmt::format(", and {} more", reasons.size() - kReasonsMax);
  return text;
}

std::string together_text(const Placing& placing, const Candidates& candidates) {
  const Ask ask = ask_of(placing.job.spec);
  for (const NodeRecord* node : candidates.nodes()) {
    if (std::string text = NodeCards(*node, placing.job.spec, candidates.type()).together(ask);
        !text.empty())
      return text;
  }
  return {};
}

}  // namespace

std::string need_text(const Placing& placing, const Candidates& candidates) {
  const v1::JobSpec& spec = placing.job.spec;
  const v1::ResourceSpec& resources = spec.resources();
  const std::size_t nodes = std::max<std::size_t>(1, resources.nodes()),
                    devices = ask_of(spec).count;
  std::string text = fmt::format("need {} node{} with ", nodes, nodes == 1 ? "" : "s");
  if (resources.has_rank_table())
    text += fmt::format("the devices of rank table '{}'",
                        ranktable::shown(resources.rank_table().name()));
  else if (resources.device_ids().empty())
    text += fmt::format("{} device{}{}", devices, devices == 1 ? "" : "s",
                        together_text(placing, candidates));
  else
    text += fmt::format("devices {}", fmt::join(resources.device_ids(), ","));
  if (!resources.type().empty() && resources.type() != "auto")
    text += fmt::format(" of type '{}'", resources.type());
  if (const std::string& interface = spec.network().interface();
      !interface.empty() && interface != "auto")
    text += fmt::format(" on interface '{}'", interface);
  for (const auto& [key, value] :
       std::map<std::string, std::string>(resources.select().begin(), resources.select().end())) {
    text += fmt::format(", label {}={}", key, value);
  }
  return text;
}

std::string never_text(const Placing& placing, const Candidates& candidates, std::size_t able,
                       const std::string& pods) {
  const Ledger& ledger = placing.ledger;
  std::vector<std::string> reasons;
  for (const std::string& host : placing.job.spec.resources().hosts()) {
    if (!ledger.nodes.contains(NodeName(host)))
      reasons.push_back(fmt::format("'{}' is not registered", host));
  }
  const std::string interface =
      fmt::format("interface '{}'", placing.job.spec.network().interface());
  bool addresses = false, interfaces = false;
  for (std::size_t at = 0; at < candidates.nodes().size(); ++at) {
    const Fit fit = candidates.capacity(at);
    if (fit.why.empty()) continue;
    addresses = addresses || fit.lacks_addresses;
    interfaces = interfaces || fit.why.contains(interface);
    reasons.push_back(fmt::format("'{}' {}", candidates.nodes()[at]->name.str(), fit.why));
  }
  std::string text =
      fmt::format("{}; {} of {} registered node{} could do{}", need_text(placing, candidates), able,
                  ledger.nodes.size(), ledger.nodes.size() == 1 ? "" : "s", reasons_text(reasons));
  if (!pods.empty()) text += fmt::format("; {}", pods);
  if (interfaces)
    text +=
        "; network.interface is one that every node of the job has, with an address: name another, "
        "or leave it out";
  if (addresses)
    text +=
        "; a rank table over several nodes needs the address of every card's network port: see "
        "that `hccn_tool -i N -ip -g` answers there or that the agent "
        "can read /etc/hccn.conf, write them into its --devices-from file, or use launch.launcher: "
        "msrun, which needs none";
  return text;
}

std::string shortage_text(const Placing& placing, const Candidates& candidates, std::size_t fitting,
                          const std::string& pods) {
  std::vector<std::string> reasons;
  for (std::size_t at = 0; at < candidates.nodes().size(); ++at) {
    if (const Fit& fit = candidates.free(at); !fit.why.empty())
      reasons.push_back(fmt::format("'{}' {}", candidates.nodes()[at]->name.str(), fit.why));
  }
  return fmt::format("{}, {} fit{}{}{}", need_text(placing, candidates), fitting,
                     reasons_text(reasons), pods.empty() ? "" : "; ", pods);
}

std::string apart_text(const Candidates& candidates, const std::vector<bool>& able,
                       const TrainingRoutes::ReachableSet& reachable, std::size_t first) {
  const std::string why = no_route_text(reachable, *candidates.nodes()[first]);
  std::vector<std::string> reasons;
  for (std::size_t at = 0; at < able.size(); ++at) {
    if (able[at] && !reachable.in[at])
      reasons.push_back(fmt::format("'{}' {}", candidates.nodes()[at]->name.str(), why));
  }
  return fmt::format("{} of {} nodes that could do meet{}{}", reachable.size,
                     std::ranges::count(able, true), reasons_text(reasons), kWhenTheyDoNotMeet);
}

std::string port_shortage_text(const Placing& placing, const Candidates& candidates,
                               HostPorts& ports) {
  const v1::JobSpec& spec = placing.job.spec;
  const Limits& limits = placing.limits;
  const std::uint32_t fixed = spec.network().master_port();
  std::vector<std::string> reasons;
  for (std::size_t at = 0; at < candidates.nodes().size(); ++at) {
    const NodeRecord& node = *candidates.nodes()[at];
    const std::string address = training_address(node, spec);
    if (!candidates.free(at).why.empty() || ports.master(node.name, address) != 0) continue;
    const auto reserved =
        placing.ledger.indexes.ports_reserved.find({address, static_cast<std::uint16_t>(fixed)});
    const std::string holder = reserved == placing.ledger.indexes.ports_reserved.end()
                                   ? "another job"
                                   : describe(placing.ledger, reserved->second);
    reasons.push_back(fixed == 0
                          ? fmt::format("'{}'", node.name.str())
                          : fmt::format("on '{}' it is used by {}", node.name.str(), holder));
  }
  if (fixed != 0)
    return fmt::format("no node that fits has network.master_port {} free{}", fixed,
                       reasons_text(reasons));
  return fmt::format(
      "no node that fits has a port of {}-{} free, because other attempts hold them{}{}",
      limits.port_first, limits.port_last, reasons_text(reasons), kWhenPortsAreReserved);
}

std::string no_master_port_text(const NodeName& node, const Limits& limits) {
  return fmt::format(
      "'{}' has no port of {}-{} free for rank 0 in addition to those for HCCL, because other "
      "attempts hold them{}",
      node.str(), limits.port_first, limits.port_last, kWhenPortsAreReserved);
}

std::optional<PlaceResult> waits_for_lost_attempt(const Placing& placing) {
  for (const auto& [name, seen] : placing.presence.nodes) {
    const auto lost = seen.unknown_runs.lower_bound({placing.job.id, AttemptNo(0)});
    if (lost == seen.unknown_runs.end() || lost->first != placing.job.id ||
        placing.ledger.indexes.dead_nodes.contains(name))
      continue;
    const BootTime over_at = std::max(seen.last_ack_sent, placing.presence.listening_since) +
                             outlives_contact(placing.job.spec) + placing.limits.grace_margin;
    if (placing.now.boot >= over_at) continue;
    return PlaceResult{.why = fmt::format("'{}' {}", name.str(), unknown_run_text(*lost)),
                       .retry_at = over_at};
  }
  return std::nullopt;
}

std::optional<PlaceResult> backs_off(const Placing& placing) {
  const std::optional<BootTime> end =
      backoff_end(placing.job, placing.presence, placing.now, placing.limits);
  if (!end) return std::nullopt;
  return PlaceResult{.why = backoff_text(placing.job, placing.presence, placing.now, *end),
                     .retry_at = end};
}

std::optional<PlaceResult> waits_for_secret(const Placing& placing) {
  const auto secrets =
      pinned_secrets(placing.ledger, placing.job, newest_checkpoint(placing.job).has_value());
  std::vector<PinnedSecret> keys;
  const auto inputs = pinned_inputs(placing.ledger, placing.job, keys);
  const auto output = pinned_output(placing.ledger, placing.job, keys);
  if (secrets && inputs && output) return std::nullopt;
  return PlaceResult{.why = !secrets  ? secrets.error().message
                            : !inputs ? inputs.error().message
                                      : output.error().message,
                     .retry_at = placing.now.boot + std::chrono::hours(24)};
}

std::string backoff_text(const JobRecord& job, const Presence& presence, Now now, BootTime end) {
  return fmt::format("for another {} before attempt {} (recovery.backoff)",
                     age_text(end - now.boot), next_attempt(job, presence).value);
}

}  // namespace muster::core
