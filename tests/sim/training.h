// What the ranks truly do. World owns the Training. It runs on its history's one thread.
//
// The gang of an attempt advances step by step when all its ranks are alive and exec'd. A partition
// of the control plane stops no step, because the training has a network of its own. A program that
// is not in lockstep advances rank by rank.
//
// Shards are written to shared storage one by one; the seal follows the last. Ranks fail because of
// the plan's bugs, by chance, or because of their peers.
#pragma once

#include <map>
#include <set>

#include "tests/sim/machine.h"
#include "tests/sim/scenario.h"

namespace muster::sim {

struct SavedCheckpoint {
  std::set<std::uint32_t> shards;  // ranks whose shard is finished
  std::uint32_t expected = 0;
  bool sealed = false;
  [[nodiscard]] bool whole() const { return sealed && shards.size() == expected; }
};

class Training {
 public:
  explicit Training(World& world) : world_(world) {}

  void rank_started(Machine& machine, const Process& process, const v1::NodeLaunch& launch);
  void rank_ended(const Process& process, DeathCause cause);
  [[nodiscard]] std::int64_t step_of(const agent::RunKey& run, std::uint32_t rank) const;
  // The shared storage, by attempt and step. Nothing here is ever lost.
  [[nodiscard]] const std::map<std::int64_t, SavedCheckpoint>& saved(
      const agent::RunKey& run) const;
  [[nodiscard]] static std::string path_of(const agent::RunKey& run, std::int64_t step);

 private:
  struct Rank {
    Machine* machine = nullptr;
    std::uint64_t pid = 0;
    std::int64_t step = -1;
    bool alive = false;
    bool done = false;  // ended with success
  };
  struct Gang {
    const JobPlan* plan = nullptr;
    std::uint32_t world_size = 0;
    std::int64_t from = 0;  // step of the checkpoint that it resumes from
    bool from_bad = false;  // no rank can advance from it
    std::map<std::uint32_t, Rank> ranks;
    std::map<std::int64_t, SavedCheckpoint> saved;
    [[nodiscard]] bool whole() const;
  };
  void tick_gang(const agent::RunKey& run);
  void tick_rank(const agent::RunKey& run, std::uint32_t rank, std::uint64_t pid);
  // Returns false if the rank failed.
  bool advance(const agent::RunKey& run, Gang& gang, std::uint32_t rank);
  void save(const agent::RunKey& run, Gang& gang, std::uint32_t rank, std::int64_t step);
  void end_well(const agent::RunKey& run, Gang& gang, std::uint32_t rank);

  World& world_;
  std::map<agent::RunKey, Gang> gangs_;
};

}  // namespace muster::sim
