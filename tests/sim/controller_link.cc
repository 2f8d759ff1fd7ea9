// The second half of ControllerModel: the connections to agents.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/version.h"
#include "common/proto/proto_time.h"
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
        return read([this, link, message, arrived] { judge(link, message->hello(), arrived); });
      case v1::ConnectRequest::kFacts: return facts(link, message->facts());
      case v1::ConnectRequest::kHeartbeat: return heartbeat(link, message);
      case v1::ConnectRequest::kUnsupported:
      case v1::ConnectRequest::WHAT_NOT_SET: return;
    }
  });
}

core::Peers::View ControllerModel::durable() const {
  static const std::string kNotPaused;
  return {.ledger = state_.ledger,
          .presence = state_.presence,
          .paused = kNotPaused,
          .last = state_.last};
}

void ControllerModel::refuse(const LinkPtr& link, const Error& why) {
  ++world_.coverage.seen["hello refused: " + kind_of(why)];
  world_.say(
      [&] { return fmt::format("{}: refused: {}", link->machine->name().str(), why.message); });
  world_.network.closed_by_controller(link);
}

// Cut to what one cause has in common with the others of its kind.
std::string ControllerModel::kind_of(const Error& refusal) {
  for (const char* kind :
       {"this Hello is older", "the name is taken", "has not ended yet", "is connected"}) {
    if (refusal.message.find(kind) != std::string::npos) return kind;
  }
  return "runs on another machine may go on";
}

void ControllerModel::judge(const LinkPtr& link, const v1::Hello& hello, Now arrived) {
  if (!link->controller_open) return;
  core::Peers::Judgement judgement =
      peers_.hello(hello, link->id, "its machine", arrived, durable());
  if (!judgement.behind.empty()) {
    if (!journal_.may_be_behind()) return world_.watch.fell_behind(judgement.behind);
    ++world_.coverage.seen["loss accepted once more: an agent had been told more"];
    behind_ = hello.lineage().generation();
    return;
  }
  // The journal does not know the agent, so only the person who reads this refusal believes it.
  if (judgement.refusal && judgement.refusal->message.contains("knows no such agent")) {
    if (!journal_.may_be_behind()) return world_.watch.fell_behind(judgement.refusal->message);
    ++world_.coverage.seen["loss accepted once more: an unknown agent had been told more"];
    behind_ = 0;
    return;
  }
  if (judgement.refusal) return refuse(link, *judgement.refusal);
  if (judgement.replaced) end_stream(judgement.replaced->stream);
  streams_[link->id] = {.link = link};
  spoken_for_[link->id] = judgement.input.instance;
  ask_core(
      std::move(judgement.input),
      [this, link](const core::Answer& answer) { registered(link, answer.refusal); }, Mutant::None,
      std::move(judgement.then));
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
  observe(core::Disconnected{.node = stream.node, .connection = stream.connection});
  if (!ended.empty() && ended.mapped().link->controller_open)
    world_.network.closed_by_controller(ended.mapped().link);
}

// --- a second machine of the same name ----------------------------------------------------------

void ControllerModel::twin_says_hello(const Machine& machine, ConnectionId connection) {
  now([this, &machine, connection] {
    if (!listening_) return;
    v1::Hello hello;
    hello.set_protocol_min(kProtocolMin);
    hello.set_protocol_max(kProtocolMax);
    hello.set_node(machine.name().str());
    hello.set_instance("twin-of-" + machine.name().str());
    hello.set_boot_id("boot-of-twin-of-" + machine.name().str());
    hello.set_incarnation("one");
    hello.mutable_uptime()->set_seconds(60);
    hello.set_version("0.1.0");
    *hello.mutable_inventory() = machine.inventory();
    read([this, &machine, hello, connection, arrived = clocks()] {
      judge_twin(machine, hello, connection, arrived);
    });
  });
}

void ControllerModel::judge_twin(const Machine& machine, const v1::Hello& hello,
                                 ConnectionId connection, Now arrived) {
  core::Peers::Judgement judgement =
      peers_.hello(hello, connection, "another machine", arrived, durable());
  if (judgement.refusal) {
    ++world_.coverage.seen["twin refused: connected"];
    world_.say([&] { return "twin refused: " + judgement.refusal->message; });
    return;
  }
  if (judgement.replaced) end_stream(judgement.replaced->stream);
  ask_core(
      std::move(judgement.input),
      [this, stream = core::Peers::Stream{.node = machine.name(), .connection = connection}](
          const core::Answer& answer) { twin_registered(stream, answer.refusal); },
      Mutant::None, std::move(judgement.then));
}

// It stays for a while. When it is ordered to stop something, it reports that nothing of it is
// there.
void ControllerModel::twin_registered(const core::Peers::Stream& stream,
                                      const std::optional<Error>& refusal) {
  const core::Peers::Admission admission = peers_.registered(stream, refusal, durable());
  if (admission.refusal) {
    ++world_.coverage.seen["twin refused"];
    peers_.gone(stream);
    return;
  }
  if (!admission.welcome) return;
  ++world_.coverage.seen["twin took the name"];
  const InstanceId instance("twin-of-" + stream.node.str());
  for (const core::Assignment& wanted : core::desired(state_.ledger, stream.node)) {
    if (wanted.want != core::Want::Stop) continue;
    v1::Fact fact;
    fact.set_job_id(wanted.job.str());
    fact.set_attempt(wanted.attempt.value);
    fact.mutable_swept()->set_why(v1::SWEPT_WHY_NEVER_STARTED);
    ask_core(core::ReportFact{.node = stream.node, .instance = instance, .fact = fact}, {},
             Mutant::None);
  }
  Actor::after(world_.rng.between(500, 10'000) * kMillisecond, [this, stream] {
    peers_.gone(stream);
    observe(core::Disconnected{.node = stream.node, .connection = stream.connection});
  });
}

// --- up ------------------------------------------------------------------------------------------

void ControllerModel::facts(const LinkPtr& link, const v1::Facts& facts) {
  const auto speaker = spoken_for_.find(link->id);
  if (speaker == spoken_for_.end()) return;
  const InstanceId& instance = speaker->second;
  const NodeName& node = link->machine->name();
  for (int i = 0; i < facts.facts_size(); ++i) {
    const v1::Fact& fact = facts.facts(i);
    const bool last = i + 1 == facts.facts_size();
    ask_core(
        core::ReportFact{.node = node, .instance = instance, .fact = fact},
        [this, link, instance,
         facts = last ? std::optional(facts) : std::nullopt](const core::Answer& answer) {
          if (answer.rows == 0) ++world_.coverage.seen["facts known or without meaning"];
          if (facts) acknowledge(link, instance, *facts);
        },
        Mutant::AckBeforeSync);
    if (fact.has_swept())
      observe(core::SweptHeard{.node = node,
                               .connection = link->id,
                               .job = JobId(fact.job_id()),
                               .attempt = AttemptNo(fact.attempt())});
  }
}

void ControllerModel::acknowledge(const LinkPtr& link, const InstanceId& instance,
                                  const v1::Facts& facts) {
  if (!streams_.contains(link->id)) return;
  for (const v1::Fact& fact : facts.facts())
    world_.watch.acknowledged(link->machine->name(), instance, fact);
  v1::FactAck ack;
  ack.set_sequence(facts.sequence());
  ack.set_index(state_.last.value);
  send(link->id, std::move(ack));
}

// The answer leaves at once: presence is not durable. It is observed before it leaves, with the
// heartbeat's arrival.
void ControllerModel::heartbeat(const LinkPtr& link,
                                const std::shared_ptr<const v1::ConnectRequest>& message) {
  if (!spoken_for_.contains(link->id)) return;
  const NodeName& node = link->machine->name();
  observe(core::HeartbeatHeard{
      .node = node, .connection = link->id, .heartbeat = message->heartbeat()});
  if (world_.mutant != Mutant::AcksForgotten)
    observe(core::HeartbeatAcked{.node = node, .connection = link->id});
  if (!streams_.contains(link->id)) return;  // it was replaced
  world_.watch.heartbeat_acknowledged(node);
  v1::HeartbeatAck ack;
  ack.set_number(message->heartbeat().number());
  ack.set_epoch(state_.ledger.epoch.value);
  *ack.mutable_at() = to_proto(clocks().wall);
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
  observe(core::Disconnected{.node = node, .connection = link->id});
}

// A short model of the log channel: what a swept run's logs still have to send arrives a little
// later, if at all.
void ControllerModel::logs_pushed(Machine& machine, const agent::RunKey& run) {
  if (!world_.network.reachable(machine)) return;
  world_.timeline.after(
      world_.network.delay(), [this, node = machine.name(), run, born = incarnation()] {
        if (!listening() || incarnation() != born) return;
        now([this, node, run] {
          ask_core(core::ReportLogsCollected{.job = run.first, .attempt = run.second, .node = node},
                   {}, Mutant::None);
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
    if (part.placed.rank_count == part.placed.devices.size()) {
      rank.add_devices(part.placed.devices[local]);
    } else {
      for (const std::uint32_t device : part.placed.devices) rank.add_devices(device);
    }
  }
  *launch.mutable_orphan_grace() = job.spec.recovery().orphan_grace();
  *launch.mutable_stop_grace() = job.spec.recovery().stop_grace();
  launch.mutable_watching()->set_world_size(attempt.world_size());
  if (attempt.output && part.uploads) launch.mutable_upload()->set_url(job.spec.outputs().to());
  if (attempt.logs_output && part.uploads_logs)
    launch.mutable_logs_upload()->set_url(job.spec.outputs().logs_to());
  // If it starts only with the weights, the program begins at step 0.
  if (attempt.resume && (!attempt.resume->from_start || core::goes_on_from_start(job.spec))) {
    launch.mutable_resume()->set_step(attempt.resume->step);
    launch.mutable_resume()->set_source(attempt.resume->path);
  }
}

void ControllerModel::send_orders(const NodeName& node, bool always) {
  const auto wanted = peers_.orders(node, durable(), always);
  // Of a twin there is only what it says.
  if (!wanted || !streams_.contains(wanted->stream.connection)) return;
  core::NodeOrders orders{.standing = wanted->standing, .runs = {}, .running = wanted->running};
  for (const core::Assignment& one : wanted->runs) {
    const core::JobRecord& job = state_.ledger.jobs.at(one.job);
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
    Actor::after(world_.rng.skewed(50 * kMicrosecond, 50 * kMillisecond), [this, connection] {
      const auto later = streams_.find(connection);
      if (later == streams_.end()) return;
      later->second.writing = false;
      write_next(connection);
    });
  }
}

}  // namespace muster::sim
