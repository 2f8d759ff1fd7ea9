// The request of a launcher's command line, in a job's terms: number of nodes, processes on each
// node, and the program. Pure.
//
// Options that a job's placement decides (node rank, master, rendezvous), and options that have no
// effect with muster, are listed and not dropped silently.
//
// Sources of the defaults: pytorch/pytorch torch/distributed/run.py; mindspore-ai/mindspore
// mindspore/python/mindspore/parallel/cluster/run.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/compat/launcher/call.h"

namespace muster::launcher {

struct Wanted {
  enum class Kind : std::uint8_t { Script, Module, Program };
  Kind kind = Kind::Script;
  std::vector<std::string> program;  // the script, module or program, and its arguments
  std::string interpreter;           // given before msrun's script; empty: the launcher's own
  std::uint32_t nodes = 1;
  // on each node; nothing: as many as a machine has devices (--nproc_per_node gpu)
  std::optional<std::uint32_t> processes;
  std::vector<std::string> placed;  // "--node_rank 0": the placement decides it
  std::vector<std::string> idle;    // "--log_dir logs": has no effect
};

// Errors (InvalidArgument) name the launcher and the option: a number of nodes that may change
// while the job runs, a text that is no number, or ranks that are not a multiple of the ranks on
// each node.
Result<Wanted> wanted_of(const Call& call);

}  // namespace muster::launcher
