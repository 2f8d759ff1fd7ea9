// What every rank of an intercepted launch gets: its number, its environment and its command line,
// from
// the node's place in the job (variables that muster set for the script), the launcher's options
// and the environment that the script has made. Pure.
//
// The job's placement decides how many ranks there are, their numbers and the master; what the
// script says of these is replaced, and told in notice(). What the script exports goes to every
// rank, less what is the shim's own: a launcher that a rank itself calls is not intercepted again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/launcher/call.h"

namespace muster::shim {

using launcher::Call;
using launcher::Launcher;

using Environment = std::map<std::string, std::string, std::less<>>;
// empty: not set, or set to nothing
std::string_view value_of(const Environment& environment, std::string_view name);

struct Place {
  std::uint32_t world = 0, first = 0;  // ranks of the training; the first one of this node
  std::uint32_t nodes = 1, node = 0;
  std::vector<std::string> devices;  // of this node: a rank each
  std::string master_addr, master_port;
  std::string job_id, restarts, restarts_max;
  std::string logs;  // directory
  std::int64_t grace_ms = 0;
};
// Nothing: this is no script that muster started, or it has emptied its environment.
std::optional<Place> read_place(const Environment& environment);

struct Process {
  std::string name;  // "rank 3", "scheduler"
  std::string log;   // absolute
  // where the launcher itself would have put its log, relative to the working directory; empty:
  // nowhere
  std::string link;
  std::vector<std::string> argv;
  Environment environment;
  bool rank = true;
  std::uint32_t number = 0;  // of the rank, over the whole launch
};

struct Interpreter {
  std::string path;
  // torch.distributed.launch of PyTorch 2.0 and later gives --local-rank, before it was
  // --local_rank
  bool dashed_local_rank = false;
};

// Errors (InvalidArgument): an argument edit that is none.
Result<std::vector<Process>> plan_processes(const Call& call, const Place& place,
                                            const Environment& environment,
                                            const Interpreter& interpreter);

// One line: which ranks, and what of the launcher's options was replaced.
std::string notice(const Call& call, const Place& place);

}  // namespace muster::shim
