#include "tests/sim/world.h"

#include "common/base/assert.h"
#include "tests/sim/agent_model.h"
#include "tests/sim/broken.h"

namespace muster::sim {

std::string describe(const agent::RunKey& run) {
  return fmt::format("{}.{}", run.first.str(), run.second.value);
}

std::string describe(const Process& process) {
  switch (process.kind) {
    case Process::Kind::Worker: return fmt::format("worker {}", process.pid);
    case Process::Kind::Rank: return fmt::format("rank {} (pid {})", process.rank, process.pid);
    case Process::Kind::Child: return fmt::format("child {} of rank {}", process.pid, process.rank);
  }
  return "?";
}

World::World(const Knobs& knobs, Mutant broken, bool tell)
    : rng(knobs.seed * 0x9E3779B97F4A7C15ULL + 1),
      scenario(make_scenario(knobs, rng)),
      mutant(broken),
      trace(tell),
      watch(*this),
      network(*this),
      training(*this),
      controller(*this),
      client(*this),
      operators(*this),
      storm(*this) {
  playing = broken;
  for (std::uint32_t number = 1; number <= scenario.nodes; ++number) {
    machines.push_back(
        std::make_unique<Machine>(*this, NodeName("n" + std::to_string(number)), scenario.devices));
  }
}

Machine& World::machine(const NodeName& name) {
  for (const auto& machine : machines) {
    if (machine->name() == name) return *machine;
  }
  MUSTER_ASSERT(false, "every node of a history has a machine");
}

std::optional<std::string> World::left_open() {
  const core::Ledger& ledger = controller.ledger();
  for (const auto& [id, job] : ledger.jobs) {
    if (!core::is_final(job.phase)) continue;
    for (const core::AttemptRecord& attempt : job.attempts) {
      for (const core::NodePart& part : attempt.parts) {
        if (part.idle() || part.closed() || ledger.indexes.dead_nodes.contains(part.placed.node))
          continue;
        // A power loss removed the launch record, and left what its worker had written. The logs
        // are there, but nobody can name them.
        const auto& runs = machine(part.placed.node).disk().runs;
        const auto dir = runs.find({id, attempt.number});
        if (dir != runs.end() && !dir->second->launch && part.swept) continue;
        return fmt::format("{} of {} on {}: swept {}, logs collected {}, uploads {} {}",
                           describe(agent::RunKey{id, attempt.number}), job.spec.name(),
                           part.placed.node.str(), part.swept, part.logs_collected, part.uploads,
                           part.uploads_logs);
      }
    }
  }
  return std::nullopt;
}

void World::print(const std::string& text) const {
  fmt::print("{:>11.6f} {}\n", static_cast<double>(timeline.now()) / static_cast<double>(kSecond),
             text);
}

History World::run() {
  History history{.seed = scenario.seed};
  controller.launch();
  for (const auto& machine : machines) machine->agent().launch();
  client.begin();
  operators.begin();
  storm.begin();
  while (!watch.violation() && !storm.over() && history.deeds < scenario.steps_max &&
         timeline.step())
    ++history.deeds;
  if (!watch.violation()) watch.finish();
  history.lasted = timeline.now();
  history.violation = watch.violation();
  history.coverage = coverage;
  return history;
}

}  // namespace muster::sim
