// Starts one process of the attempt - a rank, an auxiliary process, the setup: fork, and in the
// child a
// session of its own, log, user, parent-death signal, directory, exec. The child tells what went
// wrong through a close-on-exec pipe that all processes of one start share: its end is the moment
// in which every one of them has been exec'd or has failed.
// A plain fork on purpose: the worker is small, so a fork is cheap; the children's work up to the
// exec runs beside the next fork, which
// a vfork forbids; and a rank whose file system hangs in chdir or exec cannot hang the worker
// (measured: docs/run-directory.md).
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::worker {

enum class ProcessKind : std::uint32_t { Rank, Auxiliary, Setup };

// Which one: the index in Launch.ranks or in Launch.auxiliaries; of the setup 0.
struct ProcessOf {
  ProcessKind kind = ProcessKind::Rank;
  std::uint32_t index = 0;
};

enum class StartStage : std::uint32_t { Session, Cgroup, Log, Script, User, Directory, Exec };

// What a child writes into the pipe (in one write: it is shorter than PIPE_BUF).
struct StartReport {
  ProcessOf process;
  StartStage stage = StartStage::Exec;
  std::int32_t error = 0;
};

struct StartContext {
  const rundir::v1::Launch* launch = nullptr;
  // the setup's environment at its end; none: there was no setup
  const std::vector<std::string>* inherited = nullptr;
  std::string process_tag;  // MUSTER_PROCESS_TAG=value
  pid_t worker = 0;
  int null_fd = -1;
  int report_fd = -1;
  std::optional<rlimit> nofile;  // none: as the worker's
  int cgroup_dir_fd = -1;        // -1: none
  int cgroup_procs_fd = -1;      // with it, for kernels that cannot make a child in a group
};

// Of a rank: what the setup left, the common environment over it, the rank's own over both, the
// process tag over all; of a name that comes twice the later one. An auxiliary process has its own
// in place of
// the last two, the setup the common one alone. Pointers into the context.
std::vector<const char*> environment_of(const StartContext& context, const ProcessOf& process);

// Returns in the worker only. The process is made inside the cgroup (clone3) where the kernel can:
// joining it later waits for an RCU grace period, 5 to 13 ms for the first of an attempt
// (tests/bench/RESULTS.md). Errors: the fork itself.
Result<pid_t> start_process(const StartContext& context, const ProcessOf& process);

// "executing '/x': No such file or directory"; of an auxiliary process "starting auxiliary process
// 'scheduler':
// executing ...".
std::string describe(const StartReport& report, const rundir::v1::Launch& launch);

}  // namespace muster::worker
