#include "controller/core/peers.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "common/proto/proto_lineage.h"
#include "common/proto/proto_time.h"
#include "controller/core/hello.h"
#include "controller/core/model/event_fields.h"

namespace muster::core {
namespace {

// How long an agent that was killed and restarted waits for its old stream to end, if nothing else
// ends that stream.
constexpr Duration kHolderHeardMost = std::chrono::seconds(5);

std::set<AttemptKey> keys_of(const std::vector<Assignment>& assignments) {
  std::set<AttemptKey> keys;
  for (const Assignment& one : assignments) keys.emplace(one.job, one.attempt);
  return keys;
}

bool holds(const std::vector<Assignment>& assignments, const Assignment& one) {
  return std::ranges::find(assignments, one) != assignments.end();
}

Error refused(ErrorCode code, std::string text) {
  return {.code = code, .message = std::move(text)};
}

void put(v1::RemoteCheckpoint& to, const RemoteCheckpoint& from) {
  to.set_attempt(from.attempt.value);
  to.set_step(from.step);
  to.set_mark(from.mark);
}

v1::Orders standing_orders(const Ledger& ledger, const std::vector<Assignment>& wanted) {
  v1::Orders orders;
  orders.set_epoch(ledger.epoch.value);
  orders.set_cluster_id(ledger.cluster.str());
  *orders.mutable_lineage() = to_proto(ledger.lineage);
  for (const Assignment& assignment : wanted) {
    if (assignment.want == Want::Run) continue;
    if (assignment.want == Want::Upload) {
      v1::UploadOrder& upload = *orders.add_uploads();
      upload.set_job_id(assignment.job.str());
      upload.set_attempt(assignment.attempt.value);
      if (assignment.upload.step) upload.set_step(*assignment.upload.step);
      upload.set_seal(assignment.upload.seal);
      for (const NodeSums& one : assignment.upload.sums) {
        v1::NodeSums& sums = *upload.add_sums();
        sums.set_node(one.node.str());
        sums.set_sha256(one.sha256);
      }
      for (const RemoteCheckpoint& one : assignment.upload.remove) put(*upload.add_remove(), one);
      for (const RemoteCheckpoint& one : assignment.upload.kept) put(*upload.add_kept(), one);
      upload.set_logs(assignment.upload.logs);
      continue;
    }
    v1::Order& order = *orders.add_orders();
    order.set_job_id(assignment.job.str());
    order.set_attempt(assignment.attempt.value);
    if (assignment.want == Want::Forget) {
      order.mutable_forget();
      continue;
    }
    order.mutable_stop();
  }
  return orders;
}

}  // namespace

// --- Hello ---------------------------------------------------------------------------------------

Peers::Judgement Peers::hello(const v1::Hello& hello, ConnectionId connection,
                              const std::string& from, Now arrived, const View& view) {
  const NodeName node(hello.node());
  const InstanceId instance(hello.instance());
  const std::string who = "connecting node '" + node.str() + "'";
  auto [refusal, behind] =
      judge_hello(hello, view.ledger, loaded_, view.last, welcomed_.contains(instance));
  // A paused controller began no epoch of its own, so no agent's reported state proves that its
  // journal is behind.
  if (!view.paused.empty() && (!refusal || !behind.empty())) {
    refusal = refused(ErrorCode::Unreachable, who + ": " + view.paused);
    behind.clear();
  }
  const auto holder = peers_.find(node);
  if (holder != peers_.end() && holder->second.instance != instance &&
      (!refusal || !behind.empty())) {
    behind.clear();
    refusal = refused(ErrorCode::Conflict, who + " (instance '" + instance.str() +
                                               "'): the name is taken by instance '" +
                                               holder->second.instance.str() + "' from " +
                                               holder->second.from + "; two agents need two names");
  }
  if (!refusal && holder != peers_.end()) refusal = outdated(holder->second, hello);
  if (!refusal && holder != peers_.end())
    refusal = other_incarnation(holder->second, hello, arrived, view.presence);
  if (!refusal) refusal = too_many_changes(hello, view.ledger, arrived);
  Judgement judgement;
  judgement.refusal = std::move(refusal);
  judgement.behind = std::move(behind);
  if (judgement.refusal) return judgement;

  if (holder != peers_.end())
    judgement.replaced = end(holder, "replaced by a newer one of the same agent");
  Peer& peer = peers_[node];
  peer.connection = connection;
  peer.instance = instance;
  peer.from = from;
  peer.incarnation = hello.incarnation();
  peer.boot_id = hello.boot_id();
  peer.uptime = to_duration(hello.uptime());
  peer.protocol_max = hello.protocol_max();
  for (const v1::PresentAttempt& present : hello.present())
    peer.present.insert({JobId(present.job_id()), AttemptNo(present.attempt())});
  judgement.input = {.node = node,
                     .instance = instance,
                     .boot_id = BootId(hello.boot_id()),
                     .inventory = hello.inventory(),
                     .version = hello.version(),
                     .uptime = to_duration(hello.uptime())};
  judgement.input.inventory.DiscardUnknownFields();
  judgement.then = {.node = node,
                    .connection = connection,
                    .instance = instance,
                    .present = {hello.present().begin(), hello.present().end()},
                    .boot_id = BootId(hello.boot_id())};
  return judgement;
}

// What changes a node's record is kept for ever. Whoever has a node's certificate could fill the
// disk with it.
std::optional<Error> Peers::too_many_changes(const v1::Hello& hello, const Ledger& ledger,
                                             Now arrived) {
  const NodeName node(hello.node());
  const auto known = ledger.nodes.find(node);
  if (known != ledger.nodes.end() && known->second.instance.str() == hello.instance() &&
      known->second.boot_id.str() == hello.boot_id() && known->second.version == hello.version() &&
      google::protobuf::util::MessageDifferencer::Equals(known->second.inventory,
                                                         hello.inventory()))
    return std::nullopt;
  if (changes_.take(node, hello.inventory().ByteSizeLong(), arrived.boot)) return std::nullopt;
  return refused(ErrorCode::Unreachable,
                 "connecting node '" + hello.node() +
                     "': what it says of its devices, disks or version has changed so often that "
                     "the controller keeps no more of it for some minutes; see what changes there "
                     "(`muster events " +
                     hello.node() + "`)");
}

// A Hello may be on its way for long, and arrive after the agent has given it up and has made a new
// one. It does not know what was started since. The uptime of the machine tells which is older.
std::optional<Error> Peers::outdated(const Peer& holder, const v1::Hello& hello) {
  if (hello.incarnation() != holder.incarnation || hello.boot_id() != holder.boot_id ||
      to_duration(hello.uptime()) >= holder.uptime)
    return std::nullopt;
  return refused(ErrorCode::Unreachable,
                 "connecting node '" + hello.node() +
                     "': this Hello is older than the one by which the agent is connected");
}

// Two agents on copies of one state directory have the same instance. If each replaced the other's
// stream, both would start what is ordered. An agent that was killed and restarted is another
// incarnation, too; but then nothing more arrives from the earlier one.
std::optional<Error> Peers::other_incarnation(Peer& holder, const v1::Hello& hello, Now arrived,
                                              const Presence& presence) const {
  if (hello.incarnation() == holder.incarnation) return std::nullopt;
  const auto seen = presence.nodes.find(NodeName(hello.node()));
  if (seen == presence.nodes.end()) return std::nullopt;
  const BootTime heard = seen->second.last_heard;
  // A heartbeat of a healthy holder arrives within this time.
  const Duration patience =
      std::max(std::min(3 * heartbeat_interval_, kHolderHeardMost), heartbeat_interval_ * 6 / 5);
  if (arrived.boot - heard > patience) return std::nullopt;
  if (holder.contender != hello.incarnation()) {
    holder.contender = hello.incarnation();
    holder.contended_since = arrived.boot;
  }
  const std::string who = "connecting node '" + hello.node() + "': ";
  if (heard <= holder.contended_since) {
    return refused(ErrorCode::Unreachable,
                   who +
                       "the stream of the agent that was here before has not ended yet; trying "
                       "again helps when that one is gone");
  }
  return refused(ErrorCode::Conflict,
                 who + "another agent, from " + holder.from +
                     ", uses a copy of this agent's state directory (instance '" +
                     hello.instance() +
                     "') and is alive; stop one of the two, and give it a new, empty state "
                     "directory and a name of its own");
}

Peers::Admission Peers::registered(const Stream& stream, const std::optional<Error>& refusal,
                                   const View& view) {
  const auto found = peers_.find(stream.node);
  if (found == peers_.end() || found->second.connection != stream.connection) return {};
  if (!view.paused.empty()) {
    return {.refusal = refused(ErrorCode::Unreachable,
                               "connecting node '" + stream.node.str() + "': " + view.paused),
            .welcome = {}};
  }
  if (refusal) return {.refusal = refusal, .welcome = {}};
  found->second.welcomed = true;
  welcomed_.insert(found->second.instance);
  v1::Welcome welcome;
  welcome.set_protocol(std::min(kProtocolMax, found->second.protocol_max));
  welcome.set_cluster_id(view.ledger.cluster.str());
  welcome.set_epoch(view.ledger.epoch.value);
  *welcome.mutable_lineage() = to_proto(view.ledger.lineage);
  *welcome.mutable_heartbeat_interval() = to_proto(heartbeat_interval_);
  return {.refusal = {}, .welcome = std::move(welcome)};
}

void Peers::gone(const Stream& stream) {
  const auto peer = peers_.find(stream.node);
  if (peer != peers_.end() && peer->second.connection == stream.connection) peers_.erase(peer);
}

Peers::Ending Peers::end(std::map<NodeName, Peer>::iterator peer, std::string_view why) {
  const auto ended = peers_.extract(peer);
  return {.stream = {.node = ended.key(), .connection = ended.mapped().connection},
          .why = refused(ErrorCode::Conflict,
                         fmt::format("agent stream of node '{}': {}", ended.key().str(), why))};
}

// --- orders --------------------------------------------------------------------------------------

std::vector<Peers::Ending> Peers::released(std::span<const Row> rows, const Ledger& ledger) {
  std::vector<Ending> endings;
  for (const Row& row : rows) {
    const auto* dead = std::get_if<NodeDeclaredDead>(&row.event.body);
    if (dead == nullptr) continue;
    // It may have registered again since, or be removed.
    if (const auto node = ledger.nodes.find(dead->node);
        node == ledger.nodes.end() || !node->second.dead)
      continue;
    // The node was declared dead while its connection had stalled. If the stream continued, the
    // node would be connected, and dead for ever.
    if (const auto peer = peers_.find(dead->node); peer != peers_.end())
      endings.push_back(end(peer, "the node was declared dead; connecting again takes it back"));
  }
  return endings;
}

std::optional<Peers::Orders> Peers::orders(const NodeName& node, const View& view, bool always) {
  const auto found = peers_.find(node);
  if (!view.paused.empty() || found == peers_.end() || !found->second.welcomed) return std::nullopt;
  Peer& peer = found->second;
  std::vector<Assignment> wanted = desired(view.ledger, node);
  for (Assignment& one : wanted) {
    // The part was started, but the agent of this stream neither has it nor was ordered to run it.
    // So its state directory is another agent's, or an older one. Or the journal's end was lost,
    // and the order may have been carried out. The part is swept by its process tag; to start it
    // here would be a second start.
    if (one.want != Want::Run || peer.present.contains({one.job, one.attempt}) ||
        holds(peer.sent, one))
      continue;
    const JobRecord& job = view.ledger.jobs.at(one.job);
    if (job.attempts_lost > 0 || job.attempt(one.attempt)->part(node)->was_there())
      one.want = Want::Stop;
  }
  std::set<AttemptKey> there = peer.present;
  there.insert(peer.seen.begin(), peer.seen.end());
  const std::set<AttemptKey> mentioned = keys_of(wanted);
  for (const auto& [job, attempt] : there) {
    if (!mentioned.contains({job, attempt}) && may_forget(view.ledger, node, job, attempt))
      wanted.push_back({.job = job, .attempt = attempt, .want = Want::Forget});
  }
  if (!always && wanted == peer.sent) return std::nullopt;
  Orders orders{.stream = {.node = node, .connection = peer.connection},
                .standing = standing_orders(view.ledger, wanted),
                .runs = {},
                .running = {}};
  for (const Assignment& one : wanted) {
    if (one.want != Want::Run) continue;
    const AttemptKey key{one.job, one.attempt};
    orders.running.insert(key);
    if (!peer.present.contains(key) && !holds(peer.sent, one)) orders.runs.push_back(one);
  }
  peer.sent = std::move(wanted);
  return orders;
}

bool Peers::has_leftovers(const HeartbeatHeard& heartbeat) {
  const auto peer = peers_.find(heartbeat.node);
  if (peer == peers_.end() || peer->second.connection != heartbeat.connection) return false;
  std::set<AttemptKey>& seen = peer->second.seen;
  seen.clear();
  for (const v1::AttemptReading& reading : heartbeat.heartbeat.readings())
    seen.emplace(JobId(reading.job_id()), AttemptNo(reading.attempt()));
  const std::set<AttemptKey> sent = keys_of(peer->second.sent);
  return !std::ranges::all_of(seen, [&](const AttemptKey& key) { return sent.contains(key); });
}

bool Peers::is_welcomed(const NodeName& node) const {
  const auto peer = peers_.find(node);
  return peer != peers_.end() && peer->second.welcomed;
}

std::vector<NodeName> touched_nodes(std::span<const Row> rows, const Ledger& ledger) {
  std::set<NodeName> nodes;
  std::set<JobId> completing;
  for (const Row& row : rows) {
    const EventBody& body = row.event.body;
    if (const NodeName* node = node_of(body)) nodes.insert(*node);
    const JobId* id = job_of(body);
    if (id == nullptr) continue;
    const auto job = ledger.jobs.find(*id);
    if (job == ledger.jobs.end()) continue;
    // Facts of one node change only that node's orders, except for the end of the last rank.
    // Everything else about a job may change the orders of all its nodes.
    if (node_of(body) != nullptr) {
      const bool last =
          std::holds_alternative<RankExited>(body) && job->second.phase == JobPhase::Completing;
      if (!last || !completing.insert(*id).second) continue;
    }
    for (const AttemptRecord& attempt : job->second.attempts) {
      for (const NodePart& part : attempt.parts) nodes.insert(part.placed.node);
    }
  }
  return {nodes.begin(), nodes.end()};
}

}  // namespace muster::core
