// The second half of AgentModel: the agent's connection to the controller.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/lease.h"
#include "tests/sim/agent_model.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

constexpr Time kHeartbeatInterval = kSecond;

Duration grace_of(const v1::NodeLaunch& launch) {
  return std::chrono::seconds(launch.orphan_grace().seconds()) +
         std::chrono::nanoseconds(launch.orphan_grace().nanos());
}

}  // namespace

void AgentModel::retry() {
  backoff_ = std::min<Time>(backoff_ * 2, 2 * kSecond);
  after(world_.rng.between(backoff_ / 2, backoff_), [this] { connect(); });
}

void AgentModel::connect() {
  if (link_ != nullptr) return;
  const LinkPtr link = world_.network.connect(machine_);
  if (link == nullptr) return retry();
  link_ = link;
  welcomed_ = false;
  sent_.clear();
  sequence_ = 0;
  after(world_.network.delay(), [this, link] {
    if (link_ == link) hello();
  });
}

void AgentModel::hello() {
  hello_sent_ = machine_.clocks().boot;
  v1::ConnectRequest request;
  v1::Hello& hello = *request.mutable_hello();
  hello.set_protocol_min(1);
  hello.set_protocol_max(1);
  hello.set_version("0.1.0");
  hello.set_node(machine_.name().str());
  hello.set_instance(self_.instance.str());
  hello.set_boot_id(self_.boot_id.str());
  hello.set_highest_epoch(machine_.disk().identity->highest_epoch.value);
  hello.set_acked_index(machine_.disk().identity->acked.value);
  *hello.mutable_inventory() = machine_.inventory();
  for (const auto& [run, dir] : machine_.disk().runs) {
    v1::PresentAttempt& present = *hello.add_present();
    present.set_job_id(run.first.str());
    present.set_attempt(run.second.value);
    present.set_swept(observe(run, *dir).swept);
  }
  world_.network.send_up(link_, std::move(request));
  // No answer for a while means that nobody is there.
  after(10 * kSecond, [this, link = link_] {
    if (link_ != link || welcomed_) return;
    world_.network.closed_by_agent(link);
    link_closed(link);
  });
}

void AgentModel::link_closed(const LinkPtr& link) {
  link->agent_open = false;
  if (link_ != link) return;
  link_.reset();
  welcomed_ = false;
  heartbeats_sent_.clear();
  retry();
}

// What the agent wrote into a stream that stalled on its path: it will still arrive.
void AgentModel::last_words(const LinkPtr& link) {
  if (link_ != link || !welcomed_ || paused()) return;
  heartbeat();
  send_facts();
}

void AgentModel::receive(const LinkPtr& link, std::shared_ptr<const Down> message) {
  now([this, link, message] {
    const v1::ConnectResponse& what = message->what;
    const bool stale = link != link_ && world_.mutant == Mutant::StaleOrders && what.has_orders();
    if (link != link_ && !stale) return;
    switch (what.what_case()) {
      case v1::ConnectResponse::kWelcome: {
        Identity& identity = *machine_.disk().identity;
        if (Epoch(what.welcome().epoch()) < identity.highest_epoch) {
          world_.network.closed_by_agent(link);
          return link_closed(link);
        }
        identity.highest_epoch = Epoch(what.welcome().epoch());
        welcomed_ = true;
        backoff_ = 50 * kMillisecond;
        acknowledged_from_ = std::max(acknowledged_from_, hello_sent_);
        send_facts();
        after(world_.rng.between(0, 100 * kMillisecond), [this, link] {
          if (link_ == link) heartbeat();
        });
        return;
      }
      case v1::ConnectResponse::kOrders:
        if (!stale && Epoch(what.orders().epoch()) < machine_.disk().identity->highest_epoch)
          return;
        return take(what.orders(), message->order);
      case v1::ConnectResponse::kFactAck: {
        JournalIndex& acked = machine_.disk().identity->acked;
        acked = std::max(acked, JournalIndex(what.fact_ack().index()));
        return;
      }
      case v1::ConnectResponse::kHeartbeatAck: {
        const auto sent = heartbeats_sent_.find(what.heartbeat_ack().number());
        if (sent == heartbeats_sent_.end()) return;
        acknowledged_from_ = std::max(acknowledged_from_, sent->second);
        heartbeats_sent_.erase(heartbeats_sent_.begin(), std::next(sent));
        return renew_leases(acknowledged_from_);
      }
      case v1::ConnectResponse::kFilesWanted:  // the model has no files
      case v1::ConnectResponse::WHAT_NOT_SET: return;
    }
  });
}

void AgentModel::take(const v1::Orders& orders, std::uint64_t order) {
  world_.watch.orders_taken(machine_, Epoch(orders.epoch()), order);
  orders_ = orders;
  if (world_.mutant == Mutant::StopOnAbsence) stop_what_is_not_mentioned();
  poke();
}

void AgentModel::renew_leases(BootTime from) {
  for (const auto& [run, dir] : machine_.disk().runs) {
    if (!dir->launch || dir->launch_boot != self_.boot_id) continue;
    const Duration grace = grace_of(*dir->launch);
    const BootTime until = from + grace + lease_step(grace);
    if (dir->lease && dir->lease->boot == self_.boot_id &&
        until < dir->lease->until + lease_step(grace))
      continue;
    dir->lease = Lease{.until = until, .boot = self_.boot_id};
  }
}

void AgentModel::send_facts() {
  if (link_ == nullptr || !welcomed_) return;
  v1::ConnectRequest request;
  v1::Facts& facts = *request.mutable_facts();
  for (const auto& [run, dir] : machine_.disk().runs) {
    if (known_before_.contains(run)) continue;
    for (v1::Fact& fact : agent::facts_of(run, observe(run, *dir))) {
      if (!sent_.insert(fact_key(fact)).second) continue;
      world_.watch.fact_sent(machine_, fact);
      *facts.add_facts() = std::move(fact);
    }
  }
  if (facts.facts().empty()) return;
  sequence_ += static_cast<std::uint64_t>(facts.facts_size());
  facts.set_sequence(sequence_);
  world_.network.send_up(link_, std::move(request));
}

void AgentModel::heartbeat() {
  if (link_ == nullptr || !welcomed_) return;
  note_first_steps();
  send_facts();
  v1::ConnectRequest request;
  v1::Heartbeat& heartbeat = *request.mutable_heartbeat();
  heartbeat.set_number(++heartbeat_);
  heartbeats_sent_[heartbeat_] = machine_.clocks().boot;
  for (const auto& [run, dir] : machine_.disk().runs) {
    if (dir->launch) add_reading(heartbeat, run, *dir);
  }
  world_.network.send_up(link_, std::move(request));
  if (world_.mutant == Mutant::LeaseWithoutEcho) renew_leases(machine_.clocks().boot);
  after(kHeartbeatInterval, [this, link = link_] {
    if (link_ != link) return;
    // No answer for long: the other end is gone, whatever the socket reports.
    if (heartbeats_sent_.size() > 15) {
      world_.network.closed_by_agent(link);
      return link_closed(link);
    }
    this->heartbeat();
  });
  // Only a launch record names the ranks, so a refused run never sends a log.
  for (const auto& [run, dir] : machine_.disk().runs) {
    if (dir->launch && heartbeat_ % 2 == 0 && observe(run, *dir).swept)
      world_.controller.logs_pushed(machine_, run);
  }
}

void AgentModel::add_reading(v1::Heartbeat& heartbeat, const agent::RunKey& run,
                             const RunDir& dir) const {
  v1::AttemptReading& reading = *heartbeat.add_readings();
  reading.set_job_id(run.first.str());
  reading.set_attempt(run.second.value);
  for (const v1::RankProcess& from : dir.launch->ranks()) {
    v1::RankReading& rank = *reading.add_ranks();
    rank.set_rank(from.rank());
    rank.set_step(world_.training.step_of(run, from.rank()));
  }
  const auto& saved = world_.training.saved(run);
  int newest = 0;
  for (auto checkpoint = saved.rbegin(); checkpoint != saved.rend() && newest < 2;
       ++checkpoint, ++newest) {
    for (const std::uint32_t rank : checkpoint->second.shards) {
      v1::ShardReading& shard = *reading.add_shards();
      shard.set_step(checkpoint->first);
      shard.set_shard(fmt::format("mp_rank_{:02d}", rank));
      shard.set_bytes(1'000);
      shard.set_finished(true);
      shard.set_expected(checkpoint->second.expected);
      shard.set_sealed(checkpoint->second.sealed);
      shard.set_path(Training::path_of(run, checkpoint->first));
    }
  }
}

}  // namespace muster::sim
