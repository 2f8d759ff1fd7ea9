// The ranks of one intercepted launch: children of the shim, which stays in the script's process
// tree,
// so that what the script puts behind it (`| tee`, `&`, a test of its status) works as with the
// real launcher. One thread, one epoll.
//
//   - Every rank leads a process group and dies with the shim (parent-death signal). SIGTERM,
//     SIGINT, SIGHUP and SIGQUIT go on to all of them, each once.
//   - What a rank writes goes line by line into its own log and on through the shim's stdout and
//     stderr; where the script has sent these into a file, a copy
//   goes
//     to the node's log, where progress is read.
//   - The first bad end stops the others: SIGTERM, grace, SIGKILL. A group is killed before its
//     leader is reaped.
//   - It is the subreaper of what its ranks leave: what was killed with a rank's group is reaped
//     here. What left the group goes on.
//   - msrun's scheduler ends by itself after the ranks, or is ended then; a bad end of it before is
//     as a rank's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker/shim/place.h"

namespace muster::shim {

struct Ended {
  std::string name;  // of the one that decided; empty: all ended well
  int code = 0;      // -1 when signal is set
  int signal = 0;
  bool stopped = false;  // by a signal to the shim
};

struct GangOptions {
  std::string launcher;
  std::int64_t grace_ms = 0;
  std::string node_log;  // empty: none
};

// Errors: this process could not get what it needs, and nothing runs.
Result<Ended> run_gang(const std::vector<Process>& processes, const GangOptions& options);

}  // namespace muster::shim
