// Starts and supervises the ranks of one intercepted launch, as children of the launcher shim.
// run_shim() calls run_gang(), which returns when all have ended. It has one thread and one epoll.
//
// The shim stays in the script's process tree. What the script puts after it (`| tee`, `&`, a test
// of its status) therefore works as with the real launcher.
//
//   - Every rank leads a process group and dies with the shim (parent-death signal). The shim
//     passes SIGTERM, SIGINT, SIGHUP and SIGQUIT on to all ranks, each signal once.
//   - The output of a rank goes line by line into its own log and to the shim's stdout and stderr.
//     If the script has redirected these into a file, a copy goes to the node's log, from which
//     progress is read.
//   - The first bad end stops the others: SIGTERM, grace, SIGKILL. A group is killed before its
//     leader is reaped.
//   - The shim is the subreaper of processes that its ranks leave. It reaps those that were killed
//     with a rank's group. Those that left the group continue.
//   - msrun's scheduler ends by itself after the ranks, or is ended then. If it ends badly before
//     that, this counts like a rank's bad end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker/shim/place.h"

namespace muster::shim {

struct Ended {
  std::string name;  // the process that decided; empty: all ended well
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
