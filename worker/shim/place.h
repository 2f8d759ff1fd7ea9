// Computes what every rank of an intercepted launch gets: its number, its environment and its
// command line. Pure.
//
// It uses the node's part of the job (variables that muster set for the script), the launcher's
// options, and the environment that the script has made.
//
// The job's placement decides the number of ranks, their numbers and the master. Options of the
// script for these are replaced, and notice() reports it. Every rank gets the variables that the
// script exports, without the shim's own: a launcher that a rank itself calls is not intercepted
// again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/compat/arguments/edits.h"
#include "common/compat/launcher/call.h"

namespace muster::shim {

using launcher::Call;
using launcher::Launcher;

using Environment = std::map<std::string, std::string, std::less<>>;
// Empty: not set, or set to an empty value.
std::string_view value_of(const Environment& environment, std::string_view name);

struct Place {
  std::uint32_t world = 0, first = 0;  // ranks of the training; first rank of this node
  std::uint32_t nodes = 1, node = 0;
  std::vector<std::string> devices;  // of this node, one for each rank
  std::string master_addr, master_port;
  std::string job_id, restarts, restarts_max;
  std::string logs;  // directory
  std::int64_t grace_ms = 0;
};
// Returns nullopt if muster did not start this script, or if the script has emptied its
// environment.
std::optional<Place> read_place(const Environment& environment);

struct Process {
  std::string name;  // "rank 3", "scheduler"
  std::string log;   // absolute
  // The path of the log that the launcher itself would write, relative to the working directory.
  // Empty: none.
  std::string link;
  std::vector<std::string> argv;
  Environment environment;
  bool rank = true;
  std::uint32_t number = 0;  // of the rank, in the whole launch
};

struct Interpreter {
  std::string path;
  // torch.distributed.launch passes --local-rank since PyTorch 2.0, and --local_rank before.
  bool dashed_local_rank = false;
};

// `edits` change the training program's arguments.
std::vector<Process> plan_processes(const Call& call, const Place& place,
                                    const Environment& environment, const ArgumentEdits& edits,
                                    const Interpreter& interpreter);

// Returns one line: which ranks start, and which of the launcher's options were replaced.
std::string notice(const Call& call, const Place& place);

}  // namespace muster::shim
