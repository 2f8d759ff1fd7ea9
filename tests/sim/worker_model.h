// A simulated worker, which keeps the promises of worker/supervisor.h. Its Machine owns it. It runs
// on its history's one thread.
//
// It claims, starts, records, stops with grace, respects its lease, sweeps, and reports the sweep
// last. The end of one rank stops no other rank.
#pragma once

#include <map>
#include <optional>

#include "tests/sim/machine.h"

namespace muster::sim {

class WorkerModel : public Actor {
 public:
  WorkerModel(World& world, Machine& machine, agent::RunKey run, std::uint64_t pid,
              bool heeds_claim);
  void start();
  void sigterm();
  void child_ended(const Process& rank, std::int32_t code, std::int32_t signal);
  void gone() { end_incarnation(); }
  // Frozen (SIGSTOP): its ranks continue, and nobody supervises them.
  void pause() { hold(); }
  void resume() { let_go(); }

 private:
  void claim();
  void exec_next(int index);
  void all_execd();
  void record_exit(const Process& rank, std::int32_t code, std::int32_t signal);
  void request_stop(DeathCause why);
  void record_stop(DeathCause why);
  void kill_ranks(DeathCause why);
  void check_lease();
  void sweep_when_done();
  [[nodiscard]] std::optional<Lease> lease() const;  // nothing: gone, or of another boot
  void write(WorkerEvent event);

  World& world_;
  Machine& machine_;
  agent::RunKey run_;
  std::uint64_t pid_;
  bool heeds_claim_;
  std::shared_ptr<RunDir> dir_;  // by descriptor: a removed directory still accepts writes
  v1::NodeLaunch launch_;
  Time stop_grace_ = 0, term_delay_ = 0;
  std::map<std::uint32_t, std::uint64_t> running_;  // rank -> pid, until reaped
  std::optional<DeathCause> stopping_;
  bool stop_recorded_ = false, all_started_ = false, sweeping_ = false;
};

}  // namespace muster::sim
