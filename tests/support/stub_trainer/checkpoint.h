// The stub trainer's checkpoints: writes and reads them. main() of the stub calls these functions,
// on the process's one thread.
//
// It uses Megatron's tree (iter_%07d/mp_rank_%02d/model_optim_rng.pt, one shard for each rank, and
// the tracker). Each shard is a stored zip. Shards are written as Megatron writes them: in place,
// in pieces, the zip's end last, so that a kill leaves a torn shard.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/stub_trainer/options.h"

namespace stub {

struct State {
  std::int64_t step = 0;
  std::uint64_t shared = 0;  // the same in all ranks
  // Of this rank: a shard of another step or rank changes every later loss.
  std::uint64_t local = 0;
  friend bool operator==(const State&, const State&) = default;
};

void save_shard(const Options& options, const State& state);
void write_tracker(const Options& options, std::int64_t step);
// -1: there is no tracker.
std::int64_t read_tracker(const std::string& dir);
// Ends the process like python when the shard is torn or belongs to another rank.
State load_shard(const Options& options, std::int64_t step);

}  // namespace stub
