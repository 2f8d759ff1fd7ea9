#include "controller/core/placement/candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/ranktable/words.h"
#include "controller/core/model/text.h"
#include "controller/core/nodes/drain.h"
#include "controller/core/placement/device_health.h"

namespace muster::core {
namespace {

bool is_loopback_text(std::string_view text) {
  const auto address = ranktable::parse_address(text);
  return address && ranktable::is_loopback(*address);
}

}  // namespace

std::string describe(const Ledger& ledger, const AttemptKey& key) {
  const auto job = ledger.jobs.find(key.first);
  return job == ledger.jobs.end()
             ? key.first.str()
             : fmt::format("'{}' attempt {}", job->second.spec.name(), key.second.value);
}

std::string unknown_run_text(const AttemptKey& key) {
  return fmt::format(
      "may still run attempt {} of job '{}', which this journal does not have: end its "
      "muster-worker there",
      key.second.value, key.first.str());
}

Candidates::Candidates(const Placing& placing)
    : placing_(placing),
      avoided_(avoided_nodes(placing.job, placing.now, placing.limits)),
      ask_(ask_of(placing.job.spec)) {
  const Ledger& ledger = placing.ledger;
  const v1::JobSpec& spec = placing.job.spec;
  own_ = placing.job.own_table != nullptr ? placing.job.own_table : read_own_table(spec);
  if (own_ != nullptr) {
    TableNodes found = find_nodes(*own_, ledger, spec);
    missing_ = std::move(found.why);
    if (missing_.empty()) nodes_ = std::move(found.nodes);
  } else if (spec.resources().hosts().empty()) {
    for (const auto& [name, node] : ledger.nodes) nodes_.push_back(&node);
  } else {
    for (const std::string& host : spec.resources().hosts()) {
      if (const auto node = ledger.nodes.find(NodeName(host)); node != ledger.nodes.end())
        nodes_.push_back(&node->second);
    }
  }
  forget();
}

void Candidates::consider(std::string_view type) {
  if (type == type_) return;
  type_ = type;
  forget();
}

void Candidates::only_routable() {
  const bool any = std::ranges::any_of(nodes_, [&](const NodeRecord* node) {
    return !is_loopback_text(training_address(*node, placing_.job.spec));
  });
  if (any == only_routable_) return;
  only_routable_ = any;
  forget();
}

void Candidates::heed_pauses(bool heed) {
  if (heed == heed_pauses_) return;
  heed_pauses_ = heed;
  forget();
}

Fit Candidates::capacity(std::size_t at) const {
  if (placing_.checks != nullptr && *placing_.checks > 0) --*placing_.checks;
  if (own_ != nullptr) return server_fit(*own_, at, *nodes_[at], placing_.job.spec, type_);
  return core::capacity(*nodes_[at], placing_.job.spec, type_);
}

std::vector<std::uint32_t> Candidates::choose(std::size_t at,
                                              const std::vector<std::uint32_t>& usable) const {
  return NodeCards(*nodes_[at], placing_.job.spec, type_).choose(ask_, usable);
}

std::vector<std::uint32_t> Candidates::could_give(std::size_t at, bool only_usable) const {
  if (only_usable && nodes_[at]->drain) return {};
  Fit fit = capacity(at);
  if (!fit.why.empty()) return {};
  const std::size_t all = fit.devices.size();
  if (const auto seen = placing_.presence.nodes.find(nodes_[at]->name);
      only_usable && seen != placing_.presence.nodes.end())
    std::erase_if(fit.devices,
                  [&](std::uint32_t device) { return unusable(seen->second, device).has_value(); });
  if (own_ == nullptr) return choose(at, fit.devices);
  return fit.devices.size() == all ? std::move(fit.devices) : std::vector<std::uint32_t>();
}

const Fit& Candidates::free(std::size_t at) const {
  if (!free_[at]) free_[at] = examine(*nodes_[at], at);
  if (!free_[at]->why.empty()) return *free_[at];
  for (const std::vector<Fit>* out : {&other_storage_, &left_out_}) {
    if (!out->empty() && !(*out)[at].why.empty()) return (*out)[at];
  }
  return *free_[at];
}

void Candidates::leave_out(std::vector<std::string> reasons) {
  left_out_.clear();
  for (std::string& why : reasons) left_out_.push_back({.why = std::move(why)});
}

void Candidates::only_storage(std::vector<std::string> reasons) {
  other_storage_.clear();
  for (std::string& why : reasons) other_storage_.push_back({.why = std::move(why)});
}

std::string Candidates::away(const NodeRecord& node) const {
  const Presence& presence = placing_.presence;
  const Now now = placing_.now;
  if (node.drain) return drain_text(*node.drain);
  if (is_silent(presence, node.name, now.boot, placing_.limits.silent_after))
    return fmt::format("is silent for {}", age_text(now.boot - last_word(presence, node.name)));
  if (!is_connected(presence, node.name)) return "is not connected";
  if (const std::string address = training_address(node, placing_.job.spec);
      only_routable_ && is_loopback_text(address))
    return fmt::format(
        "has the training address {}, which other nodes cannot reach: start its agent with "
        "--address",
        address);
  const NodeSeen& seen = presence.nodes.at(node.name);
  if (seen.instance != node.instance) return "is just coming back with another state directory";
  if (!seen.unknown_runs.empty()) return unknown_run_text(*seen.unknown_runs.begin());
  if (awaits_probe(node, seen)) return "has not reported yet how its devices are";
  if (const auto avoided = avoided_.find(node.name);
      avoided != avoided_.end() && avoided->second.retry_at && heed_pauses_)
    return fmt::format("could not start attempt {} ({}) and is tried again in {}",
                       avoided->second.attempt.value, to_string(avoided->second.why),
                       age_text(*avoided->second.retry_at - now.boot));
  return {};
}

Fit Candidates::examine(const NodeRecord& node, std::size_t at) const {
  Fit fit = capacity(at);
  if (!fit.why.empty()) return fit;
  if (std::string why = away(node); !why.empty()) return {.why = std::move(why)};
  const NodeSeen& seen = placing_.presence.nodes.at(node.name);
  const std::size_t all = fit.devices.size();
  const auto holders = placing_.ledger.indexes.device_holders.find(node.name);
  std::string holder;
  std::erase_if(fit.devices, [&](std::uint32_t device) {
    if (placing_.taken.devices.contains({node.name, device})) return true;
    if (std::optional<std::string> why = unusable(seen, device)) {
      if (holder.empty()) holder = *std::move(why);
      return true;
    }
    if (holders == placing_.ledger.indexes.device_holders.end()) return false;
    const auto reserved = holders->second.find(device);
    if (reserved == holders->second.end()) return false;
    if (holder.empty()) holder = describe(placing_.ledger, reserved->second);
    return true;
  });
  const NodeCards cards(node, placing_.job.spec, type_);
  std::vector<std::uint32_t> chosen;
  if (own_ == nullptr)
    chosen = cards.choose(ask_, fit.devices);
  else if (fit.devices.size() == all)
    chosen = fit.devices;
  if (!chosen.empty()) return {.devices = std::move(chosen)};
  const std::string some =
      own_ == nullptr ? cards.tally(fit.devices) : std::to_string(fit.devices.size());
  return {.why = fmt::format("has {} of {} devices free{}", some, all,
                             holder.empty() ? "" : " (" + holder + ")")};
}

}  // namespace muster::core
