// Finds the values that a script computes from a value that muster replaces, such as a global batch
// size from NNODES. Pure.
//
// With launch.per: node the launcher that the script calls gets the job's own numbers, but such a
// computed value does not change.
//
// Replaced are:
// - the variables in which launch scripts keep the placement (NNODES, NODE_RANK, MASTER_ADDR,
//   NPROC_PER_NODE, GPUS_PER_NODE, NPUS_PER_NODE, WORLD_SIZE and similar ones);
// - every variable that a script passes to the launcher's options (`--nnodes $N`);
// - copies of either.
//
// Reported are other assignments that contain a replaced variable, and $((...)) in any command. The
// value of a launcher's own option is not reported.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launcher {

struct Computed {
  std::size_t line = 1;  // of the script, from 1
  std::string variable;  // the replaced variable
  std::string text;      // the word, without line ends, cut at 120 bytes
  // the script assigns its own value to the variable: muster's value applies only without that
  // assignment
  bool own = false;
};

// `given`: variables whose assignments in the script are replaced by muster's values before the
// script runs.
std::vector<Computed> computed_from_placement(std::string_view script,
                                              const std::vector<std::string>& given = {});

// Whether muster sets this variable: NNODES, MASTER_ADDR, RANK, ...
bool is_placement_variable(std::string_view name);

}  // namespace muster::launcher
