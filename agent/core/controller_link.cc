#include "agent/core/controller_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/proto/proto_lineage.h"

namespace muster::agent {
namespace {

constexpr std::size_t kHeartbeatsRemembered = 256;

// Whether `a` is of an older controller than `b`. Both are of this agent, which has accepted one
// lineage of each generation at most.
bool older(const Identity& a, const Identity& b) {
  return std::tie(a.lineage.generation, a.highest_epoch) <
         std::tie(b.lineage.generation, b.highest_epoch);
}

Result<void> check_lineage(const Lineage& lineage, const Lineage& seen) {
  if (!well_formed(lineage)) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the controller has a malformed lineage (generation {}, an id of {} "
                            "bytes): it is no controller of muster; check its address",
                            lineage.generation, lineage.id.size()));
  }
  if (lineage.generation < seen.generation) {
    return fail(ErrorCode::Conflict,
                fmt::format("the controller is of an older journal (lineage generation {}, this "
                            "agent has seen generation {}): it is an old controller, or one with "
                            "an old copy of its journal; stop it",
                            lineage.generation, seen.generation));
  }
  if (lineage.generation == seen.generation && lineage.id != seen.id) {
    return fail(ErrorCode::Conflict,
                fmt::format("the controller is of another journal (lineage '{}' of generation {}, "
                            "this agent has seen '{}'): two controllers went on from copies of one "
                            "journal; stop the wrong one",
                            lineage.id, lineage.generation, seen.id));
  }
  return {};
}

// Why the agent ignores orders of this lineage.
std::string ignored_lineage(const Lineage& lineage, const Lineage& seen) {
  if (lineage.generation == seen.generation)
    return fmt::format("ignoring orders of another lineage of generation {}", seen.generation);
  return fmt::format("ignoring orders of lineage generation {}: this agent has seen generation {}",
                     lineage.generation, seen.generation);
}

}  // namespace

void ControllerLink::fill(v1::Hello& hello) const {
  hello.set_cluster_id(identity_.cluster.str());
  hello.set_instance(identity_.instance.str());
  *hello.mutable_lineage() = to_proto(identity_.lineage);
  hello.set_highest_epoch(identity_.highest_epoch.value);
  hello.set_acked_index(identity_.acked.value);
}

Result<bool> ControllerLink::welcome(const v1::Welcome& welcome,
                                     const std::function<Result<void>(const Identity&)>& join) {
  const ClusterId cluster(welcome.cluster_id());
  const Epoch epoch(welcome.epoch());
  if (!identity_.cluster.empty() && identity_.cluster != cluster) {
    return fail(ErrorCode::NotAllowed,
                fmt::format("the controller is of cluster '{}', this agent belongs to cluster "
                            "'{}'; give the agent another state directory (--state-dir) to move it",
                            cluster.str(), identity_.cluster.str()));
  }
  const Lineage lineage = to_lineage(welcome.lineage());
  if (auto checked = check_lineage(lineage, identity_.lineage); !checked)
    return fail(std::move(checked).error());
  const bool newer = lineage.generation > identity_.lineage.generation;
  if (!newer && epoch < identity_.highest_epoch) {
    return fail(ErrorCode::Conflict,
                fmt::format("the controller is at epoch {}, this agent has seen epoch {}: it is an "
                            "old controller, or one with an old copy of its journal; stop it",
                            epoch.value, identity_.highest_epoch.value));
  }
  bool store = false;
  if (identity_.cluster != cluster) {
    Identity joined = identity_;
    joined.cluster = cluster;
    joined.lineage = lineage;
    joined.highest_epoch = epoch;
    if (auto stored = join(joined); !stored)
      return fail(std::move(stored).error().in("joining cluster '" + cluster.str() + "'"));
    identity_ = joined;
    stored_ = joined;
  } else if (newer) {
    identity_.lineage = lineage;
    identity_.highest_epoch = epoch;
    identity_.acked = {};
    store = true;
  } else {
    store = see_epoch(epoch);
  }
  welcomed_once_ = true;
  orders_.reset();
  waiting_orders_.reset();
  ignored_.clear();
  unsupported_.clear();
  heartbeats_.clear();
  mark_acked_ = probe_acked_ = 0;
  return store;
}

bool ControllerLink::see_epoch(Epoch epoch) {
  if (epoch <= identity_.highest_epoch) return false;
  identity_.highest_epoch = epoch;
  return true;
}

ControllerLink::Taken ControllerLink::take(v1::Orders orders,
                                           const std::map<RunKey, RunSeen>& seen) {
  std::string why;
  if (orders.cluster_id() != identity_.cluster.str()) {
    why = fmt::format("ignoring orders of another cluster '{}': this agent belongs to '{}'",
                      orders.cluster_id(), identity_.cluster.str());
  } else if (const Lineage lineage = to_lineage(orders.lineage()); lineage != identity_.lineage) {
    why = ignored_lineage(lineage, identity_.lineage);
  } else if (Epoch(orders.epoch()) < identity_.highest_epoch) {
    why = fmt::format("ignoring orders of epoch {}: a controller of epoch {} has been seen",
                      orders.epoch(), identity_.highest_epoch.value);
  }
  if (!why.empty()) {
    if (std::exchange(ignored_, why) == why) why.clear();
    return {.ignored = std::move(why)};
  }
  Taken taken{.accepted = true};
  taken.store = see_epoch(Epoch(orders.epoch()));
  if (older(stored_, identity_)) {
    waiting_orders_ =
        merged(std::exchange(waiting_orders_, {}).value_or(v1::Orders()), std::move(orders), seen);
  } else {
    obey(std::move(orders), seen);
    taken.obey = true;
  }
  return taken;
}

bool ControllerLink::stored(const Identity& identity, const std::map<RunKey, RunSeen>& seen) {
  if (!older(stored_, identity)) return false;
  stored_ = identity;
  if (older(stored_, identity_) || !waiting_orders_) return false;
  obey(*std::exchange(waiting_orders_, std::nullopt), seen);
  return true;
}

void ControllerLink::obey(v1::Orders orders, const std::map<RunKey, RunSeen>& seen) {
  orders_ = merged(std::exchange(orders_, {}).value_or(v1::Orders()), std::move(orders), seen);
}

std::vector<RunKey> ControllerLink::take_unsupported() {
  if (!orders_) return {};
  std::vector<RunKey> fresh = unsupported(*orders_);
  std::erase_if(fresh, [this](const RunKey& run) { return !unsupported_.insert(run).second; });
  return fresh;
}

bool ControllerLink::take(const v1::FactAck& ack) {
  if (JournalIndex(ack.index()) <= identity_.acked) return false;
  identity_.acked = JournalIndex(ack.index());
  return true;
}

std::uint64_t ControllerLink::next_heartbeat(BootTime now, std::uint64_t mark,
                                             std::uint64_t probe) {
  heartbeats_[++heartbeat_] = {.at = now, .mark = mark, .probe = probe};
  if (heartbeats_.size() > kHeartbeatsRemembered) heartbeats_.erase(heartbeats_.begin());
  return heartbeat_;
}

std::optional<BootTime> ControllerLink::take(const v1::HeartbeatAck& ack) {
  const auto sent = heartbeats_.find(ack.number());
  if (sent == heartbeats_.end() || Epoch(ack.epoch()) < identity_.highest_epoch)
    return std::nullopt;
  const HeartbeatSent acked = sent->second;
  mark_acked_ = std::max(mark_acked_, acked.mark);
  probe_acked_ = std::max(probe_acked_, acked.probe);
  heartbeats_.erase(heartbeats_.begin(), std::next(sent));
  return acked.at;
}

}  // namespace muster::agent
