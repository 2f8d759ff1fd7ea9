// What a script computes from a value that muster replaces: a global batch size from NNODES. With
// launch.per: node the launcher that the script calls is told the job's own numbers, and such a
// value is not. Pure.
//
// Replaced are the variables that launch scripts keep the placement in (NNODES, NODE_RANK,
// MASTER_ADDR, NPROC_PER_NODE, GPUS_PER_NODE, NPUS_PER_NODE, WORLD_SIZE and the like), whatever a
// script gives to the launcher's options (`--nnodes $N`), and copies of either. Told are other
// assignments that one of them stands in, and $((...)) of any command; not what stands behind a
// launcher's own option.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launcher {

struct Computed {
  std::size_t line = 1;  // of the script, from 1
  std::string variable;  // the one that is replaced
  std::string text;      // the word, without line ends, cut at 120 bytes
  // the script gives the variable a value of its own: it is not muster's, as without that
  // assignment
  bool own = false;
};

// `given`: variables whose assignments in the script are replaced by muster's values before it
// runs.
std::vector<Computed> computed_from_placement(std::string_view script,
                                              const std::vector<std::string>& given = {});

// NNODES, MASTER_ADDR, RANK, ...: what muster says.
bool is_placement_variable(std::string_view name);

}  // namespace muster::launcher
