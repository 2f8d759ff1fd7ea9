// A drain of a node is kept: nothing new is placed there, and what its deadline ends is not charged
// to the job. OperatorModel checks that nothing is left there.
#include <fmt/format.h>

#include "tests/sim/invariant.h"
#include "tests/sim/world.h"

namespace muster::sim {
namespace {

class DrainIsKept : public Invariant {
 public:
  using Invariant::Invariant;
  [[nodiscard]] std::string_view name() const override { return "drain-is-kept"; }
  void accepted(const core::Event& event, const core::Ledger& before) override {
    if (const auto* placed = std::get_if<core::AttemptPlaced>(&event.body)) check(*placed, before);
    if (const auto* ended = std::get_if<core::AttemptEnded>(&event.body)) check(*ended, before);
    if (const auto* broke = std::get_if<core::AttemptBroke>(&event.body);
        broke != nullptr && !broke->drained.empty())
      ++world_.coverage.seen["broken by the deadline of a drain"];
    if (std::holds_alternative<core::NodeDrained>(event.body))
      ++world_.coverage.seen["node drained"];
    if (std::holds_alternative<core::NodeUndrained>(event.body))
      ++world_.coverage.seen["node undrained"];
    if (std::holds_alternative<core::NodeRenamed>(event.body))
      ++world_.coverage.seen["node renamed"];
  }

 private:
  void check(const core::AttemptPlaced& placed, const core::Ledger& before) const {
    for (const core::PlacedNode& node : placed.nodes) {
      if (before.nodes.at(node.node).drain)
        return broken(fmt::format("attempt {} of {} was placed on {}, which drains",
                                  placed.attempt.value, placed.job.str(), node.node.str()));
    }
  }
  void check(const core::AttemptEnded& ended, const core::Ledger& before) const {
    if (!before.jobs.at(ended.job).attempt(ended.attempt)->drained.empty() && ended.charged)
      broken(fmt::format("attempt {} of {} was charged, but a drain's deadline ended it",
                         ended.attempt.value, ended.job.str()));
  }
};

}  // namespace

std::vector<std::unique_ptr<Invariant>> drain_invariants(World& world) {
  std::vector<std::unique_ptr<Invariant>> all;
  all.push_back(std::make_unique<DrainIsKept>(world));
  return all;
}

}  // namespace muster::sim
