// One node as it truly is: boot, clocks, disk, processes. World owns the machines. They run on
// their history's one thread.
//
// What agents and controllers believe is compared with a Machine. Its processes are workers
// (worker_model.h), ranks, and what ranks leave behind: children in sessions of their own, which
// only a sweep finds.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "tests/sim/run_dir.h"
#include "tests/sim/timeline.h"

namespace muster::sim {

class World;
class WorkerModel;
class AgentModel;

enum class DeathCause {
  Ended,
  Failed,
  PeerLost,
  Killed,
  WorkerDied,
  PowerLost,
  Stopped,
  Orphaned,
  StartFailed,
  Swept
};
std::string_view to_string(DeathCause cause);

struct Process {
  enum class Kind { Worker, Rank, Child };
  std::uint64_t pid = 0;
  Kind kind{};
  agent::RunKey run;
  std::uint32_t rank = 0;
  std::uint64_t parent = 0;  // the worker
  std::vector<std::uint32_t> devices;
  bool claimed = false;  // For a worker: it had the claim, so that ranks may be its own.
};

class Machine {
 public:
  Machine(World& world, NodeName name, std::uint32_t devices);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] const NodeName& name() const { return name_; }
  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] const BootId& boot() const { return boot_; }
  [[nodiscard]] Now clocks() const;
  [[nodiscard]] AgentModel& agent() { return *agent_; }
  [[nodiscard]] const v1::Inventory& inventory() const { return inventory_; }
  [[nodiscard]] const std::map<std::uint64_t, Process>& processes() const { return processes_; }
  [[nodiscard]] bool alive(std::uint64_t pid) const { return processes_.contains(pid); }
  [[nodiscard]] std::vector<std::uint64_t> of_run(const agent::RunKey& run) const;
  Disk& disk() { return disk_; }

  // --- processes ---------------------------------------------------------------------------------
  std::uint64_t spawn_worker(const agent::RunKey& run, bool heeds_claim);
  void note_claimed(std::uint64_t worker) { processes_.at(worker).claimed = true; }
  std::uint64_t exec_rank(std::uint64_t worker, const agent::RunKey& run,
                          const v1::RankProcess& rank);
  void leave_child(const Process& rank);
  // The process is gone; its worker, if any, will notice. When a worker ends, its ranks end, too
  // (parent-death signal), but not their children.
  void end(std::uint64_t pid, std::int32_t code, std::int32_t signal, DeathCause cause);
  void sigterm_worker(std::uint64_t pid);
  void freeze_worker(std::uint64_t pid);
  void thaw_worker(std::uint64_t pid);
  [[nodiscard]] bool frozen(std::uint64_t pid) const;

  // --- faults ------------------------------------------------------------------------------------
  void power_off(bool lose_files);
  void power_on();    // another boot id; the agent starts
  void wipe_state();  // only the state directory: processes live on
  // The state directory is copied, and later replaced by that copy. A wipe also loses the copy.
  void copy_state();
  void put_back_state();
  [[nodiscard]] const std::optional<Disk>& copy() const { return copy_; }
  void jump_wall_clock(Time by) { wall_offset_ += by; }
  // The disk has no room for another run: starts are refused, and running ranks continue.
  void disk_full(bool full) { disk_full_ = full; }
  [[nodiscard]] bool disk_full() const { return disk_full_; }

 private:
  World& world_;
  NodeName name_;
  v1::Inventory inventory_;
  bool on_ = true, disk_full_ = false;
  std::uint32_t boots_ = 0;
  BootId boot_;
  Time boot_origin_ = 0, wall_offset_ = 0;
  Disk disk_;
  std::optional<Disk> copy_;
  std::uint64_t next_pid_ = 100;
  std::map<std::uint64_t, Process> processes_;
  std::map<std::uint64_t, std::unique_ptr<WorkerModel>> workers_;
  std::unique_ptr<AgentModel> agent_;
};

}  // namespace muster::sim
