// The second half of ControllerModel: the connections to agents, and the mutants that break them.
#include <fmt/format.h>

#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/spec_view.h"
#include "tests/sim/agent_model.h"
#include "tests/sim/controller_model.h"
#include "tests/sim/world.h"

namespace muster::sim {

void ControllerModel::receive(const LinkPtr& link,
                              const std::shared_ptr<const v1::ConnectRequest>& message) {
  now([this, link, message] {
    if (!link->controller_open || !listening_) return;
    const Now arrived = clocks();
    put([this, link, message, arrived] {
      switch (message->what_case()) {
        case v1::ConnectRequest::kHello: return hello(link, message->hello(), arrived);
        case v1::ConnectRequest::kFacts: return facts(link, message->facts());
        case v1::ConnectRequest::kHeartbeat: return heartbeat(link, message->heartbeat(), arrived);
        case v1::ConnectRequest::kUnsupported:
        case v1::ConnectRequest::WHAT_NOT_SET: return;
      }
    });
  });
}

void ControllerModel::hello(const LinkPtr& link, const v1::Hello& hello, Now arrived) {
  const NodeName node(hello.node());
  const auto refuse = [&](std::string why) {
    ++world_.coverage.seen["hello refused: " + why];
    release_.emplace_back([this, link] { world_.network.closed_by_controller(link); });
  };
  const core::AgentReach reported{.epoch = Epoch(hello.highest_epoch()),
                                  .acked = JournalIndex(hello.acked_index()),
                                  .welcomed = welcomed_.contains(InstanceId(hello.instance()))};
  const core::Reach reach{.epoch = ledger_.epoch,
                          .loaded = loaded_,
                          .last = JournalIndex(journal_.last().value + batch_.size())};
  if (core::reaches_beyond(reported, reach) && world_.mutant != Mutant::AcceptWithoutBridge) {
    if (journal_.may_be_behind()) {
      behind_ = true;
      return;
    }
    return world_.watch.fell_behind(
        fmt::format("{} was told of epoch {} and row {}; the journal had row {} when epoch {} "
                    "began, and now {}",
                    node.str(), reported.epoch.value, reported.acked.value, loaded_.value,
                    reach.epoch.value, reach.last.value));
  }
  // If a newer connection of this node has overtaken this one, this one is not accepted.
  if (const auto old = sessions_.find(node);
      old != sessions_.end() && old->second.link->id > link->id)
    return refuse("overtaken");
  const core::Decision decision = take(core::RegisterNode{.node = node,
                                                          .instance = InstanceId(hello.instance()),
                                                          .boot_id = BootId(hello.boot_id()),
                                                          .inventory = hello.inventory(),
                                                          .version = hello.version()});
  if (decision.refusal) {
    const bool connected = decision.refusal->message.find("is connected") != std::string::npos;
    return refuse(connected ? "another instance is connected"
                            : "runs on another machine may go on");
  }
  const std::vector<v1::PresentAttempt> present(hello.present().begin(), hello.present().end());
  core::observe(presence_, ledger_,
                core::Connected{.node = node,
                                .connection = link->id,
                                .instance = InstanceId(hello.instance()),
                                .present = present,
                                .boot_id = BootId(hello.boot_id())},
                arrived);
  spoken_for_[link->id.value] = InstanceId(hello.instance());
  Session& session = sessions_[node];
  session = Session{.link = link, .instance = InstanceId(hello.instance())};
  for (const v1::PresentAttempt& one : present)
    session.present.insert({JobId(one.job_id()), AttemptNo(one.attempt())});
  release_.emplace_back([this, node, link] {
    const auto found = sessions_.find(node);
    if (found == sessions_.end() || found->second.link != link) return;
    auto message = std::make_shared<Down>();
    message->what.mutable_welcome()->set_protocol(1);
    message->what.mutable_welcome()->set_cluster_id(ledger_.cluster.str());
    message->what.mutable_welcome()->set_epoch(ledger_.epoch.value);
    welcomed_.insert(found->second.instance);
    world_.network.send_down(link, std::move(message));
    found->second.welcomed = true;
  });
}

void ControllerModel::twin_says_hello(const Machine& machine, ConnectionId connection) {
  now([this, &machine, connection] {
    if (!listening_) return;
    put([this, &machine, connection] {
      const NodeName& node = machine.name();
      const InstanceId instance("twin-of-" + node.str());
      const BootId boot_id("boot-of-twin-of-" + node.str());
      if (sessions_.contains(node)) {
        ++world_.coverage.seen["twin refused: connected"];
        return;
      }
      const core::Decision decision = take(core::RegisterNode{.node = node,
                                                              .instance = instance,
                                                              .boot_id = boot_id,
                                                              .inventory = machine.inventory(),
                                                              .version = "0.1.0"});
      if (decision.refusal && world_.mutant != Mutant::TwinTakesName) {
        ++world_.coverage.seen["twin refused"];
        return;
      }
      if (decision.refusal)
        accept(core::NodeRegistered{.node = node,
                                    .instance = instance,
                                    .boot_id = boot_id,
                                    .inventory = machine.inventory()});
      ++world_.coverage.seen["twin took the name"];
      core::observe(
          presence_, ledger_,
          core::Connected{
              .node = node, .connection = connection, .instance = instance, .boot_id = boot_id},
          clocks());
      for (const core::Assignment& wanted : core::desired(ledger_, node)) {
        if (wanted.want != core::Want::Stop) continue;
        v1::Fact fact;
        fact.set_job_id(wanted.job.str());
        fact.set_attempt(wanted.attempt.value);
        fact.mutable_swept()->set_reason("never started");
        take(core::ReportFact{.node = node, .instance = instance, .fact = fact});
      }
      after(world_.rng.between(500, 10'000) * kMillisecond, [this, node, connection] {
        put([this, node, connection] {
          core::observe(presence_, ledger_,
                        core::Disconnected{.node = node, .connection = connection}, clocks());
        });
      });
    });
  });
}

void ControllerModel::facts(const LinkPtr& link, const v1::Facts& facts) {
  const auto speaker = spoken_for_.find(link->id.value);
  if (speaker == spoken_for_.end()) return;
  const NodeName& node = link->machine->name();
  for (v1::Fact fact : facts.facts()) {
    const auto job = ledger_.jobs.find(JobId(fact.job_id()));
    if (world_.mutant == Mutant::LateFactIsCurrent && job != ledger_.jobs.end() &&
        job->second.current() != nullptr && fact.has_exited()) {
      const core::NodePart* part = job->second.current()->part(node);
      fact.set_attempt(job->second.current()->number.value);
      if (part != nullptr) fact.mutable_exited()->set_rank(part->placed.first_rank.value);
    }
    const core::Decision decision =
        take(core::ReportFact{.node = node, .instance = speaker->second, .fact = fact});
    if (fact.has_swept()) {
      core::observe(presence_, ledger_,
                    core::SweptHeard{.node = node,
                                     .connection = link->id,
                                     .job = JobId(fact.job_id()),
                                     .attempt = AttemptNo(fact.attempt())},
                    clocks());
    }
    if (decision.events.empty()) ++world_.coverage.seen["facts known or without meaning"];
    if (decision.events.empty() && world_.mutant == Mutant::DoubleFacts && fact.has_exited() &&
        job != ledger_.jobs.end()) {
      if (const core::AttemptRecord* attempt = job->second.attempt(AttemptNo(fact.attempt()));
          attempt != nullptr && attempt->part(node) != nullptr) {
        accept(core::RankExited{.job = job->first,
                                .attempt = attempt->number,
                                .node = node,
                                .rank = RankNo(fact.exited().rank()),
                                .code = fact.exited().code()});
      }
    }
  }
  const auto acknowledge = [this, link, instance = speaker->second, facts] {
    for (const v1::Fact& fact : facts.facts())
      world_.watch.acknowledged(link->machine->name(), instance, fact);
    auto message = std::make_shared<Down>();
    message->what.mutable_fact_ack()->set_sequence(facts.sequence());
    message->what.mutable_fact_ack()->set_index(ledger_.index.value);
    world_.network.send_down(link, std::move(message));
  };
  if (world_.mutant == Mutant::AckBeforeSync) return acknowledge();
  release_.emplace_back(acknowledge);
}

void ControllerModel::heartbeat(const LinkPtr& link, const v1::Heartbeat& heartbeat, Now arrived) {
  const NodeName node = link->machine->name();
  core::observe(presence_, ledger_,
                core::HeartbeatHeard{.node = node, .connection = link->id, .heartbeat = heartbeat},
                arrived);
  if (world_.mutant == Mutant::TornCheckpoint) {
    for (auto& [key, attempt] : presence_.attempts) {
      for (auto& [step, checkpoint] : attempt.checkpoints) {
        checkpoint.sealed = true;
        presence_.whole.insert({key.first, key.second, step});
        checkpoint.expected = static_cast<std::uint32_t>(checkpoint.shards.size());
      }
    }
  }
  release_.emplace_back([this, link, node, number = heartbeat.number()] {
    auto message = std::make_shared<Down>();
    message->what.mutable_heartbeat_ack()->set_number(number);
    message->what.mutable_heartbeat_ack()->set_epoch(ledger_.epoch.value);
    core::observe(presence_, ledger_, core::HeartbeatAcked{.node = node, .connection = link->id},
                  clocks());
    // Otherwise it was closed while the disk was busy, and nothing leaves.
    if (link->controller_open) world_.watch.heartbeat_acknowledged(node);
    world_.network.send_down(link, std::move(message));
  });
}

void ControllerModel::link_closed(const LinkPtr& link) {
  now([this, link] {
    link->controller_open = false;
    put([this, link] {
      const NodeName& node = link->machine->name();
      core::observe(presence_, ledger_, core::Disconnected{.node = node, .connection = link->id},
                    clocks());
      if (const auto session = sessions_.find(node);
          session != sessions_.end() && session->second.link == link)
        sessions_.erase(session);
    });
  });
}

// A short model of the log channel: what a swept run's logs still have to send arrives a little
// later, if at all.
void ControllerModel::logs_pushed(Machine& machine, const agent::RunKey& run) {
  if (!world_.network.reachable(machine)) return;
  world_.timeline.after(
      world_.network.delay(), [this, node = machine.name(), run, born = incarnation()] {
        if (!listening() || incarnation() != born) return;
        now([this, node, run] {
          put([this, node, run] {
            take(core::ReportLogsCollected{.job = run.first, .attempt = run.second, .node = node});
          });
        });
      });
}

// --- orders --------------------------------------------------------------------------------------

void ControllerModel::fill(v1::NodeLaunch& launch, const core::JobRecord& job,
                           const core::AttemptRecord& attempt, const core::NodePart& part) const {
  launch.set_job_id(job.id.str());
  launch.set_attempt(attempt.number.value);
  launch.set_job_name(job.spec.name());
  launch.set_boot_id(part.placed.boot_id.str());
  launch.set_instance(part.placed.instance.str());
  for (std::uint32_t local = 0; local < part.placed.rank_count; ++local) {
    v1::RankProcess& rank = *launch.add_ranks();
    rank.set_rank(part.placed.first_rank.value + local);
    rank.set_local_rank(local);
    if (part.placed.rank_count == part.placed.devices.size()) {
      rank.add_devices(part.placed.devices[local]);
    } else {
      for (const std::uint32_t device : part.placed.devices) rank.add_devices(device);
    }
  }
  *launch.mutable_orphan_grace() = job.spec.recovery().orphan_grace();
  *launch.mutable_stop_grace() = job.spec.recovery().stop_grace();
  launch.mutable_watching()->set_world_size(attempt.world_size());
  // If it starts only with the weights, the program begins at step 0.
  if (attempt.resume && (!attempt.resume->from_start || core::goes_on_from_start(job.spec))) {
    launch.mutable_resume()->set_step(attempt.resume->step);
    launch.mutable_resume()->set_source(attempt.resume->path);
  }
}

v1::Orders ControllerModel::orders_for(const NodeName& node, const Session& session) const {
  v1::Orders orders;
  orders.set_epoch(ledger_.epoch.value);
  orders.set_cluster_id(ledger_.cluster.str());
  std::set<core::AttemptKey> mentioned;
  for (const core::Assignment& wanted : core::desired(ledger_, node)) {
    mentioned.insert({wanted.job, wanted.attempt});
    v1::Order& order = *orders.add_orders();
    order.set_job_id(wanted.job.str());
    order.set_attempt(wanted.attempt.value);
    const core::JobRecord& job = ledger_.jobs.at(wanted.job);
    switch (wanted.want) {
      case core::Want::Run:
        fill(*order.mutable_run(), job, *job.attempt(wanted.attempt),
             *job.attempt(wanted.attempt)->part(node));
        break;
      case core::Want::Stop:
        *order.mutable_stop()->mutable_grace() = job.spec.recovery().stop_grace();
        break;
      case core::Want::Forget: order.mutable_forget(); break;
    }
  }
  for (const core::AttemptKey& present : session.present) {
    if (mentioned.contains(present) ||
        !core::may_forget(ledger_, node, present.first, present.second))
      continue;
    v1::Order& order = *orders.add_orders();
    order.set_job_id(present.first.str());
    order.set_attempt(present.second.value);
    order.mutable_forget();
  }
  return orders;
}

void ControllerModel::send_orders(const NodeName& node, Session& session) {
  if (!session.welcomed) return;
  v1::Orders orders = orders_for(node, session);
  std::string bytes = orders.SerializeAsString();
  if (bytes == session.orders) return;
  session.orders = std::move(bytes);
  world_.watch.ordered(node, orders);
  auto message = std::make_shared<Down>();
  *message->what.mutable_orders() = std::move(orders);
  message->order = ++orders_sent_;
  world_.network.send_down(session.link, std::move(message));
}

// --- mutants: events that the real core would never accept --------------------------------------

void ControllerModel::break_by_mutant() {
  std::vector<core::EventBody> forged;
  for (const JobId& id : ledger_.live) {
    const core::JobRecord& job = ledger_.jobs.at(id);
    const core::AttemptRecord& attempt = *job.current();
    const auto end = [&] {
      forged.emplace_back(core::AttemptEnded{.job = id,
                                             .attempt = attempt.number,
                                             .verdict = {.reason = "forged"},
                                             .fence = "forged"});
    };
    if (world_.mutant == Mutant::NoFence && attempt.state == core::AttemptState::Stopping &&
        !job.cancel_requested)
      end();
    if (world_.mutant == Mutant::SilenceIsDeath && attempt.state == core::AttemptState::Live &&
        !core::lockstep(job.spec) && job.phase != core::JobPhase::Completing) {
      for (const core::NodePart& part : attempt.parts) {
        if (part.idle() ||
            !core::is_silent(presence_, part.placed.node, clocks().boot, limits_.silent_after))
          continue;
        forged.emplace_back(
            core::AttemptBroke{.job = id, .attempt = attempt.number, .cause = "forged"});
        end();
        break;
      }
    }
  }
  if (world_.mutant == Mutant::NobodyFirst) {
    for (const auto& [predecessor, jobs] : ledger_.dependents) {
      for (const JobId& job : jobs)
        forged.emplace_back(core::PredecessorSucceeded{.job = job, .predecessor = predecessor});
    }
  }
  for (core::EventBody& body : forged) accept(std::move(body));
}

void ControllerModel::forget_what_ends_mean(core::Decision& decision) const {
  std::erase_if(decision.events, [this](const core::EventBody& body) {
    const auto* ended = std::get_if<core::JobEnded>(&body);
    const bool waits = ended != nullptr && !ledger_.jobs.at(ended->job).waits_for.empty();
    const bool meant = waits && (ended->verdict->signature == "predecessor" ||
                                 ended->verdict->signature == "no start");
    return std::holds_alternative<core::PredecessorSucceeded>(body) || meant;
  });
}

// The mutants drop a job's start point, name an attempt of the job itself as its writer, or choose
// one that is not the newest.
void ControllerModel::break_starts(core::EventBody& body) const {
  if (auto* placed = std::get_if<core::AttemptPlaced>(&body);
      placed != nullptr && placed->resume && placed->resume->from_start) {
    if (world_.mutant == Mutant::StartForgotten && placed->attempt.value > 1)
      placed->resume.reset();
    if (world_.mutant == Mutant::StartIsOwn)
      placed->resume->path =
          Training::path_of({placed->job, placed->resume->attempt}, placed->resume->step);
  }
  auto* succeeded = std::get_if<core::PredecessorSucceeded>(&body);
  if (world_.mutant != Mutant::OldStart || succeeded == nullptr || !succeeded->checkpoint) return;
  for (const core::CheckpointRecord& known : ledger_.jobs.at(succeeded->predecessor).checkpoints) {
    if (known.step >= succeeded->checkpoint->step) continue;
    succeeded->checkpoint->attempt = known.attempt;
    succeeded->checkpoint->step = known.step;
    succeeded->checkpoint->path = known.path;
  }
}

// Pinning is checked twice: by the controller when a node comes back, and by the agent when it is
// ordered to start. A mutant without pinning lacks both checks.
bool ControllerModel::ignored_by_mutant(const core::Input& input) const {
  if (world_.mutant == Mutant::IgnoreBoot && std::holds_alternative<core::ProposeSwept>(input))
    return true;
  if (world_.mutant == Mutant::DeafToEnds && std::holds_alternative<core::ProposeSettle>(input))
    return true;
  if (world_.mutant == Mutant::WaitForAllLogs &&
      std::holds_alternative<core::ReportLogsCollected>(input))
    return true;
  const auto* broke = std::get_if<core::ProposeBreak>(&input);
  if (broke == nullptr) return false;
  if (world_.mutant == Mutant::IgnoreBoot)
    return broke->cause.find("restarted") != std::string::npos;
  return world_.mutant == Mutant::IgnoreInstance &&
         broke->cause.find("another state directory") != std::string::npos;
}

}  // namespace muster::sim
