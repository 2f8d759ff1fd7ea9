#include "tests/sim/storm.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/agent_model.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {
// Longer than any plan's budget of restarts, grace and steps takes.
constexpr Time kAfterStorm = 60 * kMinute;
constexpr Time kLogsCome = 2 * kMinute;  // for the logs of jobs that have all ended
}  // namespace

void Storm::begin() {
  world_.timeline.at(world_.scenario.storm_until, [this] { calm(); });
  if (world_.scenario.loses_journal_ends) copy_states();
  next();
}

void Storm::next() {
  world_.timeline.after(world_.rng.skewed(0, 2 * world_.scenario.fault_gap), [this] {
    if (calm_) return;
    strike();
    next();
  });
}

// A node that has lost its state directory hides what the journal lost: nobody can fence an unknown
// run. So in a history that loses ends of the journal, a state directory goes only where nothing
// runs. No second machine comes there: it reports nothing of the other machine's runs, also of
// those that the other machine is just ordered to start.
void Storm::strike() {
  Rng& rng = world_.rng;
  Machine& machine = *rng.pick(world_.machines);
  const Time now = world_.timeline.now();
  switch (rng.below(35)) {
    case 0:
    case 1:
    case 2:
    case 3: return world_.network.break_link(machine);
    case 4:
    case 5: return world_.network.stall(machine, now + rng.between(500, 12'000) * kMillisecond);
    case 6:
    case 7:
      return world_.network.partition(machine,
                                      now + rng.between(1, rng.one_in(3) ? 70 : 15) * kSecond);
    case 8:
    case 9:
    case 10: return agent_crash(machine);
    case 11:
    case 12: return agent_pause(machine);
    case 13:
    case 14:
    case 15:
    case 16:
    case 17:
    case 18: return controller_crash();
    case 19: return controller_pause();
    case 20:
    case 21: return world_.controller.slow_disk_until(now + rng.between(1, 10) * kSecond);
    case 22:
    case 23: return kill_one(machine, Process::Kind::Worker);
    case 24:
    case 25: return kill_one(machine, Process::Kind::Rank);
    case 26:
    case 27: return reboot(machine);
    case 28: return rng.one_in(2) ? node_gone(machine) : kill_one(machine, Process::Kind::Rank);
    case 29:
      return world_.scenario.loses_journal_ends && !machine.processes().empty() ? reboot(machine)
                                                                                : wipe(machine);
    case 30: return fill_disk(machine);
    case 31:
      return world_.scenario.loses_journal_ends ? put_back_state(machine) : twin(machine.name());
    case 32:
    case 33: return freeze_worker(machine);
    default: return clock_jump(machine);
  }
}

void Storm::restart_agent(Machine& machine, Time after) {
  world_.timeline.after(after, [&machine] { machine.agent().launch(); });
}

void Storm::agent_died(Machine& machine) {
  world_.coverage.hit(Fault::AgentCrash);
  restart_agent(machine, world_.rng.skewed(50 * kMillisecond,
                                           world_.rng.one_in(8) ? 60 * kSecond : 6 * kSecond));
}

void Storm::agent_crash(Machine& machine) {
  if (!machine.agent().alive()) return;
  if (world_.rng.percent(50)) return machine.agent().crash_after_effects(world_.rng.below(3));
  agent_died(machine);
  machine.agent().crash();
}

void Storm::agent_pause(Machine& machine) {
  if (!machine.agent().alive() || machine.agent().paused()) return;
  world_.coverage.hit(Fault::AgentPause);
  machine.agent().pause();
  const Time lasts = world_.rng.between(100, world_.rng.one_in(6) ? 60'000 : 12'000) * kMillisecond;
  // Sometimes it goes on with an old acknowledgement in its socket, and gets no new one.
  if (world_.rng.one_in(2)) {
    world_.timeline.after(lasts - 50 * kMillisecond, [this, &machine] {
      if (!calm_)
        world_.network.partition(machine,
                                 world_.timeline.now() + world_.rng.between(10, 70) * kSecond);
    });
  }
  world_.timeline.after(lasts, [&machine, incarnation = machine.agent().incarnation()] {
    if (machine.agent().incarnation() == incarnation) machine.agent().resume();
  });
}

void Storm::controller_died() {
  world_.timeline.after(
      world_.rng.skewed(20 * kMillisecond, world_.rng.one_in(12) ? 70 * kSecond : 5 * kSecond),
      [this] { world_.controller.launch(); });
}

// Where ends of the journal are lost, this is mostly between two batches: only then are they lost.
void Storm::controller_crash() {
  if (!world_.controller.listening()) return;
  switch (world_.rng.below(world_.scenario.loses_journal_ends ? 6 : 4)) {
    case 0:
    case 4:
    case 5:
      world_.coverage.hit(Fault::ControllerCrashIdle);
      controller_died();
      world_.controller.crash();
      return journal_end_may_go();
    case 1: return world_.controller.crash_in_batch(CrashPoint::BeforeSync);
    case 2: return world_.controller.crash_in_batch(CrashPoint::InSync);
    default: return world_.controller.crash_in_batch(CrashPoint::AfterSync);
  }
}

void Storm::journal_end_may_go() {
  if (!world_.scenario.loses_journal_ends || world_.rng.one_in(20)) return;
  const auto rows = static_cast<std::size_t>(world_.rng.between(1, world_.rng.one_in(2) ? 60 : 12));
  using Loss = ControllerModel::JournalLoss;
  Loss loss = Loss::WholeCopy;
  if (world_.rng.one_in(2)) loss = world_.rng.one_in(3) ? Loss::OldHead : Loss::NewestHead;
  if (!world_.controller.lose_journal_end(loss, rows)) return;
  world_.coverage.hit(loss == Loss::WholeCopy ? Fault::CopyPutBack : Fault::JournalEndLost);
  if (loss == Loss::OldHead) ++world_.coverage.seen["journal damaged behind an old head file"];
  world_.client.journal_end_lost();
}

// Does what the operator is advised to do about runs that a lost journal's end leaves behind: end
// their workers. Nothing else would end them.
void Storm::end_unknown_runs() {
  const core::Ledger& ledger = world_.controller.ledger();
  for (const auto& machine : world_.machines) {
    std::vector<std::uint64_t> victims;
    for (const auto& [pid, process] : machine->processes()) {
      const auto job = ledger.jobs.find(process.run.first);
      const core::AttemptRecord* attempt =
          job == ledger.jobs.end() ? nullptr : job->second.attempt(process.run.second);
      const bool known = attempt != nullptr && attempt->part(machine->name()) != nullptr;
      if (!known && process.kind == Process::Kind::Worker) victims.push_back(pid);
    }
    for (const std::uint64_t pid : victims) {
      ++world_.coverage.seen["unknown run ended by the operator"];
      world_.watch.harmed(machine->processes().at(pid).run);
      machine->end(pid, -1, 9, DeathCause::Killed);
    }
  }
  if (!over_) world_.timeline.after(10 * kSecond, [this] { end_unknown_runs(); });
}

void Storm::controller_pause() {
  if (!world_.controller.alive() || world_.controller.paused()) return;
  world_.coverage.hit(Fault::ControllerPause);
  world_.controller.pause();
  world_.timeline.after(world_.rng.between(100, 15'000) * kMillisecond,
                        [this, incarnation = world_.controller.incarnation()] {
                          if (world_.controller.incarnation() == incarnation)
                            world_.controller.resume();
                        });
}

void Storm::kill_one(Machine& machine, Process::Kind kind) {
  std::vector<std::uint64_t> victims;
  for (const auto& [pid, process] : machine.processes()) {
    if (process.kind == kind) victims.push_back(pid);
  }
  if (victims.empty()) return;
  const std::uint64_t pid = world_.rng.pick(victims);
  world_.coverage.hit(kind == Process::Kind::Worker ? Fault::WorkerKill : Fault::RankKill);
  world_.watch.harmed(machine.processes().at(pid).run);
  machine.end(pid, -1, 9, DeathCause::Killed);
}

// Mostly the node is partitioned as well; then only the agent notices that its ranks continue.
void Storm::freeze_worker(Machine& machine) {
  std::vector<std::uint64_t> victims;
  for (const auto& [pid, process] : machine.processes()) {
    if (process.kind == Process::Kind::Worker && !machine.frozen(pid)) victims.push_back(pid);
  }
  if (victims.empty() || !machine.agent().alive() || machine.agent().paused()) return;
  const std::uint64_t pid = world_.rng.pick(victims);
  world_.coverage.hit(Fault::WorkerFrozen);
  world_.say([&] { return fmt::format("{}: worker {} is frozen", machine.name().str(), pid); });
  world_.watch.harmed(machine.processes().at(pid).run);
  const Time until =
      world_.timeline.now() + world_.rng.between(2, world_.rng.one_in(3) ? 8 : 90) * kSecond;
  if (world_.rng.percent(70)) world_.network.partition(machine, until);
  machine.freeze_worker(pid);
  keep_frozen(machine, pid, until);
}

// Never longer than its agent lives: if both are dead, nobody keeps the promise on which the fence
// relies.
void Storm::keep_frozen(Machine& machine, std::uint64_t worker, Time until) {
  if (!machine.frozen(worker)) return;
  if (calm_ || !machine.agent().alive() || machine.agent().paused() ||
      world_.timeline.now() >= until)
    return machine.thaw_worker(worker);
  world_.timeline.after(100 * kMillisecond,
                        [this, &machine, worker, until] { keep_frozen(machine, worker, until); });
}

void Storm::reboot(Machine& machine) {
  if (!machine.on()) return;
  const bool lose_files = world_.rng.percent(50);
  world_.coverage.hit(lose_files ? Fault::RebootLosingFiles : Fault::Reboot);
  world_.say([&] {
    return fmt::format("{}: reboots{}", machine.name().str(),
                       lose_files ? ", unsynced files are gone" : "");
  });
  machine.power_off(lose_files);
  world_.watch.struck(machine.name());
  world_.timeline.after(world_.rng.between(500, 20'000) * kMillisecond, [this, &machine] {
    if (!gone_for_ever_.contains(machine.name())) machine.power_on();
  });
}

void Storm::node_gone(Machine& machine) {
  if (!machine.on()) return;
  world_.coverage.hit(Fault::NodeGone);
  world_.say([&] { return fmt::format("{}: is gone", machine.name().str()); });
  machine.power_off(world_.rng.percent(50));
  world_.watch.struck(machine.name());
  if (gone_for_ever_.empty() && world_.scenario.nodes > 2 && world_.rng.percent(40)) {
    gone_for_ever_.insert(machine.name());
    return;
  }
  world_.timeline.after(world_.rng.between(40, 120) * kSecond, [&machine] { machine.power_on(); });
}

void Storm::wipe(Machine& machine) {
  if (!machine.on()) return;
  world_.coverage.hit(Fault::WipedState);
  world_.say([&] {
    return fmt::format("{}: the agent's state directory is wiped", machine.name().str());
  });
  machine.agent().crash();
  machine.wipe_state();
  world_.watch.state_replaced(machine);
  world_.watch.struck(machine.name());
  restart_agent(machine, world_.rng.skewed(50 * kMillisecond, 8 * kSecond));
}

void Storm::copy_states() {
  if (calm_) return;
  for (const auto& machine : world_.machines) machine->copy_state();
  world_.timeline.after(world_.rng.between(2, 30) * kSecond, [this] { copy_states(); });
}

// Nothing runs there. A run that the copy does not have has begun, and that is durable, or it is
// broken: otherwise the agent has nothing that shows it, and is ordered to start it again.
bool Storm::may_put_back(Machine& machine) const {
  if (!machine.on() || !machine.copy() || !machine.processes().empty()) return false;
  const Book& book = world_.watch.book();
  return std::ranges::none_of(machine.disk().runs, [&](const auto& entry) {
    const agent::RunKey& run = entry.first;
    const auto truth = book.attempts.find(run);
    if (machine.copy()->runs.contains(run) || truth == book.attempts.end() ||
        !truth->second.execd_on.contains(machine.name()))
      return false;
    const core::NodeStarted started{
        .job = run.first, .attempt = run.second, .node = machine.name()};
    return !book.facts.contains(natural_key(started)) && !book.is_broken(run);
  });
}

void Storm::put_back_state(Machine& machine) {
  if (!may_put_back(machine)) return agent_crash(machine);
  ++world_.coverage.seen["agent's state directory put back from an older copy"];
  world_.say([&] {
    return fmt::format("{}: the agent's state directory is put back from an older copy",
                       machine.name().str());
  });
  machine.agent().crash();
  machine.put_back_state();
  world_.watch.state_replaced(machine);
  world_.watch.struck(machine.name());
  restart_agent(machine, world_.rng.skewed(50 * kMillisecond, 8 * kSecond));
}

void Storm::clock_jump(Machine& machine) {
  world_.coverage.hit(Fault::ClockJump);
  const Time by = world_.rng.between(-3'600, 3'600) * kSecond / (world_.rng.one_in(2) ? 60 : 1);
  if (world_.rng.percent(50)) return machine.jump_wall_clock(by);
  world_.controller.jump_wall_clock(by);
}

void Storm::fill_disk(Machine& machine) {
  if (machine.disk_full()) return;
  world_.say([&] { return fmt::format("{}: its disk is full", machine.name().str()); });
  machine.disk_full(true);
  world_.timeline.after(world_.rng.between(1, 40) * kSecond, [this, &machine] {
    world_.say([&] { return fmt::format("{}: its disk has room again", machine.name().str()); });
    machine.disk_full(false);
  });
}

// Somebody gave a second machine the name of this one. Its agent tries again and again, as agents
// do.
void Storm::twin(const NodeName& node) {
  world_.coverage.hit(Fault::TwinMachine);
  world_.say([&] { return fmt::format("{}: another machine has its name", node.str()); });
  claim_name(node, world_.rng.between(5, 40));
}

void Storm::claim_name(const NodeName& node, std::int64_t tries) {
  if (calm_ || tries == 0) return;
  world_.controller.twin_says_hello(world_.machine(node), world_.network.strangers_connection());
  world_.timeline.after(world_.rng.between(100, 1'500) * kMillisecond,
                        [this, node, tries] { claim_name(node, tries - 1); });
}

void Storm::calm() {
  calm_ = true;
  world_.say([] { return std::string("the storm is over"); });
  world_.network.heal();
  world_.controller.crash_in_batch(CrashPoint::None);
  world_.controller.slow_disk_until(0);
  if (world_.controller.paused()) world_.controller.resume();
  world_.controller.launch();
  for (const auto& machine : world_.machines) {
    machine->disk_full(false);
    if (gone_for_ever_.contains(machine->name())) continue;
    machine->power_on();
    machine->agent().crash_after_effects(UINT64_MAX);
    if (machine->agent().paused()) machine->agent().resume();
    machine->agent().launch();
  }
  if (world_.scenario.loses_journal_ends) end_unknown_runs();
  deadline_ = world_.timeline.now() + kAfterStorm;
  world_.timeline.after(20 * kSecond, [this] {
    for (const NodeName& node : gone_for_ever_) world_.client.declare_dead(node);
    world_.client.cancel_wider_than(world_.scenario.nodes -
                                    static_cast<std::uint32_t>(gone_for_ever_.size()));
  });
  await_the_end();
}

void Storm::await_the_end() {
  const bool quiet = std::ranges::all_of(
      world_.machines, [](const auto& machine) { return machine->processes().empty(); });
  const bool ended = quiet && world_.client.done();
  if (ended) deadline_ = std::min(deadline_, world_.timeline.now() + kLogsCome);
  if ((ended && !world_.left_open()) || world_.timeline.now() >= deadline_) {
    over_ = true;
    return;
  }
  world_.timeline.after(kSecond, [this] { await_the_end(); });
}

}  // namespace muster::sim
