#include "tests/sim/operator_model.h"

#include <fmt/format.h>

#include "tests/sim/world.h"

namespace muster::sim {
namespace {
constexpr std::uint64_t kOwnNumbers = 0xD1B54A32D192ED03ULL,
                        kNumbersOfRenames = 0xA24BAED4963EE407ULL;
constexpr std::uint64_t kHistoriesWithRenames = 20;  // of 100
constexpr std::uint64_t kHistoriesWithDrains = 40;   // of 100
// From a deadline to the end of the last process there, while nothing disturbs: the order, any
// plan's grace of a stop, the scans of a sweep.
constexpr Time kStopBound = 40 * kSecond;
constexpr Time kSettled = 120 * kSecond;  // after the storm: longer than any silence or grace
}  // namespace

OperatorModel::OperatorModel(World& world)
    : world_(world),
      rng_(world.scenario.seed * kOwnNumbers + 1),
      renames_(world.scenario.seed * kNumbersOfRenames + 1) {}

void OperatorModel::begin() {
  if (world_.scenario.has_store) keep_store();
  if (renames_.percent(kHistoriesWithRenames)) rename_some();
  if (!rng_.percent(kHistoriesWithDrains)) return;
  drain_some();
  undrain_all_others();
  world_.timeline.at(world_.scenario.storm_until + kSettled, [this] { drain_in_calm(); });
}

bool OperatorModel::drains(const NodeName& node) const {
  const auto record = world_.controller.ledger().nodes.find(node);
  return record != world_.controller.ledger().nodes.end() && record->second.drain.has_value();
}

void OperatorModel::ask(core::Input input) {
  if (!world_.controller.listening() || rng_.one_in(20)) return;
  world_.controller.ask(std::move(input), [](const core::Answer&) {});
}

// A lost end of the journal may take it.
void OperatorModel::keep_store() {
  if (world_.controller.listening() && world_.controller.ledger().stores.empty()) {
    core::SetStore input{
        .key = {.owner = {}, .shared = true, .name = "all"}, .profile = {}, .actor = "owner"};
    input.profile.set_url("webdav://out");
    input.profile.set_endpoint("http://out.example.org");
    world_.controller.ask(std::move(input), [](const core::Answer&) {});
  }
  world_.timeline.after(kSecond, [this] { keep_store(); });
}

void OperatorModel::drain_some() {
  world_.timeline.after(rng_.between(1, 60) * kSecond, [this] {
    if (world_.timeline.now() >= world_.scenario.storm_until) return;
    const NodeName node = rng_.pick(world_.machines)->name();
    if (wanted_.insert(node).second) {
      std::optional<Time> deadline;
      if (rng_.percent(70)) deadline = rng_.between(0, 30) * kSecond;
      drain(node, deadline, world_.timeline.now() + rng_.between(5, 90) * kSecond);
    }
    drain_some();
  });
}

void OperatorModel::drain(const NodeName& node, std::optional<Time> deadline, Time until) {
  if (world_.timeline.now() >= until) {
    wanted_.erase(node);
    return;
  }
  if (!drains(node)) {
    core::DrainNode input{.node = node, .actor = "owner", .why = "because"};
    if (deadline) input.deadline = Duration(*deadline);
    ask(std::move(input));
  }
  world_.timeline.after(kSecond, [this, node, deadline, until] { drain(node, deadline, until); });
}

// Also what a lost end of the journal brings back.
void OperatorModel::undrain_all_others() {
  for (const auto& machine : world_.machines) {
    if (!wanted_.contains(machine->name()) && drains(machine->name()))
      ask(core::UndrainNode{.node = machine->name(), .actor = "owner"});
  }
  world_.timeline.after(kSecond, [this] { undrain_all_others(); });
}

void OperatorModel::rename_some() {
  world_.timeline.after(renames_.between(2, 20) * kSecond, [this] {
    if (world_.timeline.now() >= world_.scenario.storm_until) return;
    const NodeName node = renames_.pick(world_.machines)->name();
    const NodeName renamed(node.str() + "-old");
    const core::Ledger& ledger = world_.controller.ledger();
    const auto parts = ledger.indexes.node_parts.find(node);
    const bool open = parts != ledger.indexes.node_parts.end() && !parts->second.open.empty();
    if (ledger.nodes.contains(node) && !open) {
      ask(core::RenameNode{.node = node, .new_name = renamed, .actor = "owner"});
      remove_renamed(renamed);
    }
    rename_some();
  });
}

void OperatorModel::remove_renamed(const NodeName& node) {
  world_.timeline.after(renames_.between(1, 10) * kSecond, [this, node] {
    if (!world_.controller.ledger().nodes.contains(node)) return;
    ask(core::RemoveNode{.node = node, .actor = "owner"});
    remove_renamed(node);
  });
}

void OperatorModel::drain_in_calm() {
  const NodeName node = rng_.pick(world_.machines)->name();
  if (!world_.machine(node).on()) return;
  const Time deadline = rng_.between(0, 5) * kSecond;
  wanted_.insert(node);
  drain(node, deadline, world_.timeline.now() + deadline + kStopBound + 5 * kSecond);
  world_.timeline.after(deadline + kStopBound, [this, node] { must_be_empty(node); });
}

void OperatorModel::must_be_empty(const NodeName& node) {
  const core::Ledger& ledger = world_.controller.ledger();
  const auto record = ledger.nodes.find(node);
  // The request was lost several times, or the ledger's end was.
  if (record == ledger.nodes.end() || !record->second.drain || !record->second.drain->deadline ||
      world_.scenario.loses_journal_ends)
    return;
  ++world_.coverage.seen["node drained after the storm"];
  for (const auto& [pid, process] : world_.machine(node).processes()) {
    if (process.kind != Process::Kind::Rank) continue;
    return world_.watch.report(
        "drain-is-kept", fmt::format("{} of {} is still on {}, whose drain's deadline is over",
                                     describe(process), describe(process.run), node.str()));
  }
}

}  // namespace muster::sim
