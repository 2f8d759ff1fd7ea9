// The second half of AgentModel: the agent's connection to the controller.
#include <fmt/format.h>

#include <algorithm>

#include "agent/core/clock_skew.h"
#include "common/base/lease.h"
#include "tests/sim/agent_model.h"
#include "tests/sim/controller_model.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

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
  controller_->fill(hello);
  hello.set_boot_id(self_.boot_id.str());
  hello.set_incarnation(fmt::format("{}-{}", machine_.name().str(), incarnation()));
  const Duration uptime = hello_sent_.time_since_epoch();
  hello.mutable_uptime()->set_seconds(uptime / std::chrono::seconds(1));
  hello.mutable_uptime()->set_nanos(
      static_cast<std::int32_t>((uptime % std::chrono::seconds(1)).count()));
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
  ++heartbeat_timer_;
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
    if (link != link_) {
      if (world_.mutant == Mutant::StaleOrders && what.has_orders()) {
        world_.watch.orders_taken(machine_, what.orders(), message->order);
        stale_orders_ = what.orders();
        poke();
      }
      return;
    }
    if (what.has_welcome()) return welcome(link, what.welcome());
    if (!welcomed_) return;
    if (what.has_orders()) return take(*message);
    if (what.has_fact_ack() && controller_->take(what.fact_ack())) return store_identity_later();
    if (!what.has_heartbeat_ack()) return;  // the model has no files
    unanswered_ = 0;
    if (const auto sent_at = controller_->take(what.heartbeat_ack())) {
      const BootTime from =
          world_.mutant == Mutant::LeaseFromArrival ? machine_.clocks().boot : *sent_at;
      acknowledged_from_ = std::max(acknowledged_from_, from);
      renew_leases(acknowledged_from_);
      if (const auto ahead = agent::clock_skew(what.heartbeat_ack(), *sent_at, machine_.clocks())) {
        note_clock_skew(*ahead);
        send_facts();
      }
    }
  });
}

void AgentModel::welcome(const LinkPtr& link, const v1::Welcome& welcome) {
  const auto taken = controller_->welcome(welcome, [this](const agent::Identity& joined) {
    machine_.disk().identity = joined;
    return Result<void>();
  });
  if (!taken) {
    world_.network.closed_by_agent(link);
    return link_closed(link);
  }
  if (*taken) store_identity();
  welcomed_ = true;
  backoff_ = 50 * kMillisecond;
  stale_orders_.reset();
  unanswered_ = 0;
  acknowledged_from_ = std::max(acknowledged_from_, hello_sent_);
  renew_leases(acknowledged_from_);
  outbox_.reconnected();
  // Before the facts: a sweep among them must not arrive before the checkpoints of its run.
  heartbeat();
  send_facts();
}

void AgentModel::take(const Down& message) {
  const v1::Orders& orders = message.what.orders();
  const agent::ControllerLink::Taken taken = controller_->take(orders, observe());
  if (!taken.accepted) return;
  world_.watch.orders_taken(machine_, orders, message.order);
  if (taken.store) store_identity();
  if (!taken.obey) return;
  if (world_.mutant == Mutant::StopOnAbsence) stop_what_is_not_mentioned();
  poke();
}

// The disk takes the writes one after another. A crash loses those that are not done.
void AgentModel::store_identity() {
  identity_dirty_ = false;
  stored_at_ = std::max(stored_at_, world_.timeline.now()) +
               world_.rng.skewed(100 * kMicrosecond, 20 * kMillisecond);
  after(stored_at_ - world_.timeline.now(), [this, identity = controller_->identity()] {
    machine_.disk().identity = identity;
    if (!controller_->stored(identity, observe())) return;
    if (world_.mutant == Mutant::StopOnAbsence) stop_what_is_not_mentioned();
    poke();
  });
}

void AgentModel::store_identity_later() {
  if (std::exchange(identity_dirty_, true)) return;
  after(kSecond, [this] {
    if (identity_dirty_) store_identity();
  });
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
  const auto ready = [](const v1::RankExited&) { return true; };
  for (const auto& [run, dir] : machine_.disk().runs) {
    if (known_before_.contains(run)) continue;
    const agent::RunSeen seen = observe(run, *dir);
    if (seen.swept && !scans_.contains(run)) last_scan(run);
    const auto scan = scans_.find(run);
    (void)outbox_.gather(run, agent::facts_of(run, seen), ready,
                         scan != scans_.end() && scan->second);
  }
  while (!outbox_.empty()) {
    v1::ConnectRequest request;
    *request.mutable_facts() = outbox_.take();
    agent::set_ages(*request.mutable_facts(), self_, observe(), machine_.clocks());
    for (const v1::Fact& fact : request.facts().facts()) world_.watch.fact_sent(machine_, fact);
    world_.network.send_up(link_, std::move(request));
  }
}

// The last scan for the checkpoints of a swept run. What it finds is sent before the sweep.
void AgentModel::last_scan(const agent::RunKey& run) {
  scans_[run] = world_.rng.one_in(2);
  if (scans_[run]) return heartbeat();
  after(world_.rng.skewed(kMillisecond, 300 * kMillisecond), [this, run] {
    const auto scan = scans_.find(run);
    if (scan == scans_.end()) return;
    scan->second = true;
    heartbeat();
    send_facts();
  });
}

void AgentModel::heartbeat() {
  if (link_ == nullptr || !welcomed_) return;
  note_first_steps();
  v1::ConnectRequest request;
  v1::Heartbeat& heartbeat = *request.mutable_heartbeat();
  heartbeat.set_number(controller_->next_heartbeat(machine_.clocks().boot, 0, 0));
  for (const auto& [run, dir] : machine_.disk().runs) {
    if (dir->launch) add_reading(heartbeat, run, *dir);
  }
  world_.network.send_up(link_, std::move(request));
  if (world_.mutant == Mutant::LeaseWithoutEcho) renew_leases(machine_.clocks().boot);
  ++heartbeats_;
  ++unanswered_;
  after(Time(kHeartbeatInterval.count()), [this, link = link_, timer = ++heartbeat_timer_] {
    if (link_ != link || timer != heartbeat_timer_) return;
    // No answer for long: the other end is gone, whatever the socket reports.
    if (unanswered_ > 15) {
      world_.network.closed_by_agent(link);
      return link_closed(link);
    }
    this->heartbeat();
    send_facts();
  });
  // Only a launch record names the ranks, so a refused run never sends a log.
  for (const auto& [run, dir] : machine_.disk().runs) {
    if (dir->launch && heartbeats_ % 2 == 0 && observe(run, *dir).swept)
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
    const std::int64_t step = world_.training.step_of(run, from.rank());
    if (step >= 0) rank.set_step(step);
  }
  for (const auto& [step, checkpoint] : world_.training.saved(run)) {
    for (const std::uint32_t rank : checkpoint.shards) {
      v1::ShardReading& shard = *reading.add_shards();
      shard.set_step(step);
      shard.set_shard(fmt::format("mp_rank_{:02d}", rank));
      shard.set_bytes(1'000);
      shard.set_finished(true);
      shard.set_expected(checkpoint.expected);
      shard.set_sealed(checkpoint.sealed);
      shard.set_path(Training::path_of(run, step));
    }
  }
}

}  // namespace muster::sim
