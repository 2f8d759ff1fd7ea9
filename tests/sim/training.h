// What the ranks do, as it truly happens: an attempt's gang advances step by step when all its
// ranks are alive and exec'd (the training network is not the control plane's: a partition there
// stops no step); a program that is not in lockstep advances rank by rank. Shards go to shared
// storage one by one; the seal comes after the last. Ranks fail by the plan's bugs, by chance, or
// of their peers.
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
  // Shared storage, by attempt and step. Nothing here is ever lost.
  [[nodiscard]] const std::map<std::int64_t, SavedCheckpoint>& saved(
      const agent::RunKey& run) const;
  [[nodiscard]] static std::string path_of(const agent::RunKey& run, std::int64_t step);

 private:
  struct Rank {
    Machine* machine = nullptr;
    std::uint64_t pid = 0;
    std::int64_t step = -1;
    bool alive = false;
    bool done = false;  // ended well
  };
  struct Gang {
    const JobPlan* plan = nullptr;
    std::uint32_t world_size = 0;
    std::int64_t from = 0;  // steps that the checkpoint it resumes from has
    bool from_bad = false;  // nobody gets a step further from it
    std::map<std::uint32_t, Rank> ranks;
    std::map<std::int64_t, SavedCheckpoint> saved;
    [[nodiscard]] bool whole() const;
  };
  void tick_gang(const agent::RunKey& run);
  void tick_rank(const agent::RunKey& run, std::uint32_t rank, std::uint64_t pid);
  // False: it failed.
  bool advance(const agent::RunKey& run, Gang& gang, std::uint32_t rank);
  void save(const agent::RunKey& run, Gang& gang, std::uint32_t rank, std::int64_t step);
  void end_well(const agent::RunKey& run, Gang& gang, std::uint32_t rank);

  World& world_;
  std::map<agent::RunKey, Gang> gangs_;
};

}  // namespace muster::sim
