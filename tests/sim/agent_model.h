// An agent around the real agent core: observes its disk and processes, asks reconcile(), does what
// it says one effect after another (it may die between any two), reports facts_of(). What is in
// this object dies with the process; what is on the disk does not.
#pragma once

#include <memory>
#include <set>

#include "tests/sim/machine.h"
#include "tests/sim/network.h"

namespace muster::sim {

class AgentModel : public Actor {
 public:
  AgentModel(World& world, Machine& machine)
      : Actor(world_timeline(world)), world_(world), machine_(machine) {}

  void launch();
  void crash();
  void pause() { hold(); }
  void resume() { let_go(); }
  void poke();  // something in a run directory or the process table changed
  void receive(const LinkPtr& link, std::shared_ptr<const Down> message);
  void link_closed(const LinkPtr& link);
  void last_words(const LinkPtr& link);  // before a stalled stream is given up
  // A worker that is frozen does not stop its ranks: the agent kills it when it should have. The
  // others do it by themselves, and need no minding.
  void check_frozen(const agent::RunKey& run, std::uint64_t worker);
  void crash_after_effects(std::uint64_t effects) { effects_left_ = effects; }

 private:
  static Timeline& world_timeline(World& world);
  [[nodiscard]] std::map<agent::RunKey, agent::RunSeen> observe() const;
  [[nodiscard]] agent::RunSeen observe(const agent::RunKey& run, const RunDir& dir) const;
  [[nodiscard]] std::optional<BootTime> must_obey_by(const agent::RunKey& run) const;
  void note_first_steps();
  void refresh();
  // False: nothing was to be done for it now.
  bool perform(const agent::Action& action);
  bool perform_one(const agent::StartRun& action);
  bool perform_one(const agent::RefuseRun& action);
  bool perform_one(const agent::SignalStop& action);
  bool perform_one(const agent::SweepRun& action);
  bool perform_one(const agent::MarkSwept& action);
  bool perform_one(const agent::ForgetRun& action);
  void finish_sweep(const agent::RunKey& run, const std::string& reason);
  void stop_what_is_not_mentioned();
  void connect();
  void retry();
  void hello();
  void take(const v1::Orders& orders, std::uint64_t order);
  void send_facts();
  void heartbeat();
  void add_reading(v1::Heartbeat& heartbeat, const agent::RunKey& run, const RunDir& dir) const;
  void renew_leases(BootTime from);
  void mark(const agent::RunKey& run, AgentMark mark);

  World& world_;
  Machine& machine_;
  // --- of this life only -------------------------------------------------------------------------
  agent::Self self_;
  LinkPtr link_;
  bool welcomed_ = false, poked_ = false;
  std::optional<v1::Orders> orders_;
  std::map<agent::RunKey, std::uint64_t> spawned_;  // worker's pid; 0: on its way
  std::set<agent::RunKey> sweeping_;
  std::map<agent::RunKey, BootTime> signalled_;
  std::set<std::string> sent_;  // facts, on this connection
  std::uint64_t sequence_ = 0, heartbeat_ = 0;
  std::map<std::uint64_t, BootTime> heartbeats_sent_;
  // sending time of the newest message of ours that the controller has answered
  BootTime acknowledged_from_{};
  BootTime hello_sent_{};
  Time backoff_ = 0;
  std::set<agent::RunKey> known_before_;  // of the mutant that forgets its spool
  std::optional<std::uint64_t> effects_left_;
};

// A fact's natural key on its node.
std::string fact_key(const v1::Fact& fact);

}  // namespace muster::sim
