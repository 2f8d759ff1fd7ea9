// The stub's checkpoints: Megatron's tree (iter_%07d/mp_rank_%02d/model_optim_rng.pt, a shard a
// rank, and the tracker), each shard a stored zip. Written the way Megatron writes: in place, in
// pieces, the zip's end last, so that a kill leaves a torn one.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/stub_trainer/options.h"

namespace stub {

struct State {
  std::int64_t step = 0;
  std::uint64_t shared = 0;  // the same in all ranks
  // this rank's: a shard of another step or rank changes every later loss
  std::uint64_t local = 0;
  friend bool operator==(const State&, const State&) = default;
};

void save_shard(const Options& options, const State& state);
void write_tracker(const Options& options, std::int64_t step);
// -1: no tracker.
std::int64_t read_tracker(const std::string& dir);
// Ends the process like python when the shard is torn or is not this rank's.
State load_shard(const Options& options, std::int64_t step);

}  // namespace stub
