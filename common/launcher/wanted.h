// What a launcher's command line asks for, in a job's terms: how many nodes, how many processes on
// each, and what is started. What a job's placement decides (node rank, master, rendezvous) and
// what has no effect with muster is named, not lost. Pure.
//
// Sources of the defaults: pytorch/pytorch torch/distributed/run.py; mindspore-ai/mindspore
// mindspore/python/mindspore/parallel/cluster/run.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/launcher/call.h"

namespace muster::launcher {

struct Wanted {
  enum class Kind : std::uint8_t { Script, Module, Program };
  Kind kind = Kind::Script;
  std::vector<std::string> program;  // the script, module or program, and its arguments
  std::string interpreter;           // named in front of msrun's script; empty: the launcher's own
  std::uint32_t nodes = 1;
  // on each node; nothing: as many as a machine has devices (--nproc_per_node gpu)
  std::optional<std::uint32_t> processes;
  std::vector<std::string> placed;  // "--node_rank 0": the placement decides it
  std::vector<std::string> idle;    // "--log_dir logs": has no effect
};

// Errors (InvalidArgument) name the launcher and the option: a number of nodes that is to change
// while the job runs, what is no number, ranks that do not divide by the nodes.
Result<Wanted> wanted_of(const Call& call);

}  // namespace muster::launcher
