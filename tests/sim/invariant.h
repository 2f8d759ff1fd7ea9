// One promise of the design, checked against the ground truth. Watch owns all invariants. They run
// on their history's one thread.
//
// Each invariant is an object with a name. The harness calls its hooks at every change, so each
// invariant is checked after every step that could break it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/core.h"
#include "controller/journal/journal.h"
#include "tests/sim/machine.h"

namespace muster::sim {

class World;
class Watch;

class Invariant {
 public:
  explicit Invariant(World& world) : world_(world) {}
  virtual ~Invariant() = default;
  Invariant(const Invariant&) = delete;
  Invariant& operator=(const Invariant&) = delete;
  [[nodiscard]] virtual std::string_view name() const = 0;

  // --- on nodes ----------------------------------------------------------------------------------
  virtual void exec(const Machine&, const Process&) {}
  virtual void stepped(const Machine&, const agent::RunKey&, std::uint32_t /*rank*/,
                       std::int64_t /*step*/) {}
  virtual void stopping(const Machine&, const agent::RunKey&) {}
  virtual void sweeping(const Machine&, const agent::RunKey&) {}
  virtual void uploading(const Machine&, const UploadTask&) {}
  virtual void fact_sent(const Machine&, const v1::Fact&) {}
  virtual void orders_taken(const Machine&, const v1::Orders&, std::uint64_t /*order*/) {}
  // The agent's state directory was wiped, or put back from an older copy.
  virtual void state_replaced(const Machine&) {}
  // --- in the controller -------------------------------------------------------------------------
  virtual void accepted(const core::Event&, const core::Ledger& /*before*/) {}
  virtual void folded(const core::Event&, const core::Ledger& /*after*/) {}
  virtual void synced(const std::vector<journal::Row>&) {}
  virtual void replayed(const core::Ledger&) {}
  // --- what becomes visible ----------------------------------------------------------------------
  virtual void replied(const RequestId&, const JobId&) {}
  virtual void acknowledged(const NodeName&, const InstanceId&, const v1::Fact&) {}
  virtual void ordered(const NodeName&, const v1::Orders&) {}
  virtual void finish() {}

 protected:
  void broken(std::string text) const;
  World& world_;
};

std::vector<std::unique_ptr<Invariant>> fence_invariants(World& world);
std::vector<std::unique_ptr<Invariant>> durable_invariants(World& world);
std::vector<std::unique_ptr<Invariant>> truth_invariants(World& world);
std::vector<std::unique_ptr<Invariant>> drain_invariants(World& world);
std::vector<std::unique_ptr<Invariant>> upload_invariants(World& world);

}  // namespace muster::sim
