// The second half of ControllerModel: the connections to agents, and the mutants that break them.
#include <fmt/format.h>

#include <algorithm>

#include "controller/core/model/spec_view.h"
#include "tests/sim/agent_model.h"
#include "tests/sim/controller_model.h"
#include "tests/sim/world.h"

namespace muster::sim {

void ControllerModel::receive(const LinkPtr& link,
                              const std::shared_ptr<const v1::ConnectRequest>& message) {
  now([this, link, message] {
    if (!listening_) return;
    const Now arrived = clocks();
    switch (message->what_case()) {
      case v1::ConnectRequest::kHello:
        // A read of durable state: it waits for the release of a batch.
        return put([this, link, message, arrived] {
          reads_.emplace_back(
              [this, link, message, arrived] { judge(link, message->hello(), arrived); });
        });
      case v1::ConnectRequest::kFacts:
        return put([this, link, message] { facts(link, message->facts()); });
      case v1::ConnectRequest::kHeartbeat: return heartbeat(link, message, arrived);
      case v1::ConnectRequest::kUnsupported:
      case v1::ConnectRequest::WHAT_NOT_SET: return;
    }
  });
}

core::Peers::View ControllerModel::durable() const {
  static const std::string kNotPaused;
  return {.ledger = ledger_,
          .presence = presence_,
          .paused = kNotPaused,
          .last = JournalIndex(journal_.last().value + batch_.size())};
}

void ControllerModel::refuse(const LinkPtr& link, const Error& why) {
  ++world_.coverage.seen["hello refused: " + kind_of(why)];
  world_.say(
      [&] { return fmt::format("{}: refused: {}", link->machine->name().str(), why.message); });
  world_.network.closed_by_controller(link);
}

// Cut to what one cause has in common with the others of its kind.
std::string ControllerModel::kind_of(const Error& refusal) {
  for (const char* kind : {"the name is taken", "has not ended yet", "is connected"}) {
    if (refusal.message.find(kind) != std::string::npos) return kind;
  }
  return "runs on another machine may go on";
}

void ControllerModel::judge(const LinkPtr& link, v1::Hello hello, Now arrived) {
  if (!link->controller_open) return;
  if (world_.mutant == Mutant::AcceptWithoutBridge) {
    hello.clear_highest_epoch();
    hello.clear_acked_index();
  }
  core::Peers::Judgement judgement =
      peers_.hello(hello, link->id, "its machine", arrived, durable());
  if (!judgement.behind.empty()) {
    if (!journal_.may_be_behind()) return world_.watch.fell_behind(judgement.behind);
    behind_ = true;
    return;
  }
  if (judgement.refusal) return refuse(link, *judgement.refusal);
  if (judgement.replaced) end_stream(judgement.replaced->stream);
  streams_[link->id] = {.link = link};
  spoken_for_[link->id] = judgement.input.instance;
  put([this, link, input = std::move(judgement.input), then = std::move(judgement.then), arrived] {
    const core::Decision decision = take(input);
    if (!decision.refusal) core::observe(presence_, ledger_, then, arrived);
    release_.emplace_back([this, link, refusal = decision.refusal] { registered(link, refusal); });
  });
}

void ControllerModel::registered(const LinkPtr& link, const std::optional<Error>& refusal) {
  const NodeName& node = link->machine->name();
  const auto admission =
      peers_.registered({.node = node, .connection = link->id}, refusal, durable());
  if (admission.refusal) {
    refuse(link, *admission.refusal);
    return gone(link);
  }
  if (!admission.welcome) return;
  send(link->id, *admission.welcome);
  send_orders(node, true);
}

void ControllerModel::end_stream(const core::Peers::Stream& stream) {
  const auto ended = streams_.extract(stream.connection);
  put([this, stream] {
    core::observe(presence_, ledger_,
                  core::Disconnected{.node = stream.node, .connection = stream.connection},
                  clocks());
  });
  if (!ended.empty() && ended.mapped().link->controller_open)
    world_.network.closed_by_controller(ended.mapped().link);
}

void ControllerModel::twin_says_hello(const Machine& machine, ConnectionId connection) {
  now([this, &machine, connection] {
    if (!listening_) return;
    put([this, &machine, connection] {
      const NodeName& node = machine.name();
      const InstanceId instance("twin-of-" + node.str());
      const BootId boot_id("boot-of-twin-of-" + node.str());
      if (std::ranges::any_of(streams_, [&](const auto& one) {
            return one.second.link->machine->name() == node;
          })) {
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
  const auto speaker = spoken_for_.find(link->id);
  if (speaker == spoken_for_.end()) return;
  const InstanceId& instance = speaker->second;
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
        take(core::ReportFact{.node = node, .instance = instance, .fact = fact});
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
  const auto acknowledge = [this, link, instance, facts] {
    if (!streams_.contains(link->id)) return;
    for (const v1::Fact& fact : facts.facts())
      world_.watch.acknowledged(link->machine->name(), instance, fact);
    v1::FactAck ack;
    ack.set_sequence(facts.sequence());
    ack.set_index(ledger_.index.value);
    send(link->id, std::move(ack));
  };
  if (world_.mutant == Mutant::AckBeforeSync) return acknowledge();
  release_.emplace_back(acknowledge);
}

// The answer leaves at once: presence is not durable. It is observed before it leaves, with the
// heartbeat's arrival.
void ControllerModel::heartbeat(const LinkPtr& link,
                                const std::shared_ptr<const v1::ConnectRequest>& message,
                                Now arrived) {
  if (!spoken_for_.contains(link->id)) return;
  const NodeName& node = link->machine->name();
  put([this, node, connection = link->id, message, arrived] {
    const core::HeartbeatHeard heard{
        .node = node, .connection = connection, .heartbeat = message->heartbeat()};
    core::observe(presence_, ledger_, heard, arrived);
    if (world_.mutant != Mutant::AcksForgotten)
      core::observe(presence_, ledger_,
                    core::HeartbeatAcked{.node = node, .connection = connection}, arrived);
    if (world_.mutant == Mutant::TornCheckpoint) believe_every_checkpoint();
    if (peers_.has_leftovers(heard))
      reads_.emplace_back([this, node] { send_orders(node, false); });
  });
  if (!streams_.contains(link->id)) return;  // it was replaced
  world_.watch.heartbeat_acknowledged(node);
  v1::HeartbeatAck ack;
  ack.set_number(message->heartbeat().number());
  ack.set_epoch(ledger_.epoch.value);
  send(link->id, std::move(ack));
}

void ControllerModel::link_closed(const LinkPtr& link) {
  now([this, link] {
    link->controller_open = false;
    link->controller_reads_until = 0;
    gone(link);
  });
}

void ControllerModel::gone(const LinkPtr& link) {
  if (streams_.erase(link->id) == 0) return;  // never accepted, or replaced
  const NodeName& node = link->machine->name();
  peers_.gone({.node = node, .connection = link->id});
  put([this, node, connection = link->id] {
    core::observe(presence_, ledger_, core::Disconnected{.node = node, .connection = connection},
                  clocks());
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

void ControllerModel::send_orders(const NodeName& node, bool always) {
  const auto wanted = peers_.orders(node, durable(), always);
  if (!wanted) return;
  core::NodeOrders orders{.standing = wanted->standing, .runs = {}, .running = wanted->running};
  for (const core::Assignment& one : wanted->runs) {
    const core::JobRecord& job = ledger_.jobs.at(one.job);
    const core::AttemptRecord& attempt = *job.attempt(one.attempt);
    v1::Order& order = orders.runs.emplace_back();
    order.set_job_id(one.job.str());
    order.set_attempt(one.attempt.value);
    fill(*order.mutable_run(), job, attempt, *attempt.part(node));
  }
  send(wanted->stream.connection, std::move(orders));
}

template <class Message>
void ControllerModel::send(ConnectionId connection, Message message) {
  streams_.at(connection).queue.put(std::move(message));
  write_next(connection);
}

// Of some messages the write takes a while: what comes meanwhile waits in the queue, and replaces
// what it may replace.
void ControllerModel::write_next(ConnectionId connection) {
  const auto found = streams_.find(connection);
  while (found != streams_.end() && !found->second.writing) {
    Stream& stream = found->second;
    auto next = stream.queue.next();
    if (!next) return;
    auto message = std::make_shared<Down>();
    message->what = std::move(*next);
    if (message->what.has_orders()) {
      world_.watch.ordered(stream.link->machine->name(), message->what.orders());
      message->order = ++orders_sent_;
    }
    world_.network.send_down(stream.link, std::move(message));
    if (!world_.rng.one_in(4)) continue;
    stream.writing = true;
    after(world_.rng.skewed(50 * kMicrosecond, 50 * kMillisecond), [this, connection] {
      const auto later = streams_.find(connection);
      if (later == streams_.end()) return;
      later->second.writing = false;
      write_next(connection);
    });
  }
}

// --- mutants: events that the real core would never accept --------------------------------------

void ControllerModel::believe_every_checkpoint() {
  for (auto& [key, attempt] : presence_.attempts) {
    for (auto& [step, checkpoint] : attempt.checkpoints) {
      checkpoint.sealed = true;
      presence_.whole.insert({key.first, key.second, step});
      checkpoint.expected = static_cast<std::uint32_t>(checkpoint.shards.size());
    }
  }
}

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
