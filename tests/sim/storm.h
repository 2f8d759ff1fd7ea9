// The faults of a history, and when they stop. World owns the Storm. It runs on its history's one
// thread.
//
// For a while, faults of every kind occur by chance. Then everything that can be repaired is
// repaired, and the rest of the history must end by itself.
#pragma once

#include <set>

#include "tests/sim/coverage.h"
#include "tests/sim/machine.h"

namespace muster::sim {

class Storm {
 public:
  explicit Storm(World& world) : world_(world) {}
  void begin();
  [[nodiscard]] bool over() const { return over_; }
  // Planned deaths in the middle of an operation. The storm restarts daemons, so it must know of
  // them.
  void agent_died(Machine& machine);
  void controller_died();

 private:
  void next();
  void strike();
  void agent_crash(Machine& machine);
  void agent_pause(Machine& machine);
  void controller_crash();
  void journal_end_may_go();
  void end_unknown_runs();
  void controller_pause();
  void kill_one(Machine& machine, Process::Kind kind);
  void freeze_worker(Machine& machine);
  void keep_frozen(Machine& machine, std::uint64_t worker, Time until);
  void reboot(Machine& machine);
  void node_gone(Machine& machine);
  void wipe(Machine& machine);
  void copy_states();
  [[nodiscard]] bool may_put_back(Machine& machine) const;
  void put_back_state(Machine& machine);
  void clock_jump(Machine& machine);
  void fill_disk(Machine& machine);
  void twin(const NodeName& node);
  void claim_name(const NodeName& node, std::int64_t tries);
  void restart_agent(Machine& machine, Time after);
  void calm();
  void await_the_end();

  World& world_;
  bool calm_ = false, over_ = false;
  std::set<NodeName> gone_for_ever_;
  Time deadline_ = kNever;
};

}  // namespace muster::sim
