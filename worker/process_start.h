// Starts one process of the attempt: a rank, an auxiliary process, or the setup. Plain functions;
// Supervisor calls start_process() on the worker's one thread.
//
// It forks. The child then sets its own session, log, user, parent-death signal and directory, and
// calls exec. The child reports a failure through a close-on-exec pipe that all processes of one
// start share. When the pipe ends, every process has been exec'd or has failed.
//
// It uses a plain fork on purpose:
//   - The worker is small, so a fork is cheap.
//   - The work of a child before its exec runs in parallel with the next fork, which vfork forbids.
//   - A rank whose file system hangs in chdir or exec cannot hang the worker (measured:
//     docs/run-directory.md).
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

// Names a process by its index in Launch.ranks or in Launch.auxiliaries; the setup has index 0.
struct ProcessOf {
  ProcessKind kind = ProcessKind::Rank;
  std::uint32_t index = 0;
};

enum class StartStage : std::uint32_t { Session, Cgroup, Log, Script, User, Directory, Exec };

// A child writes this into the pipe, in one write: it is shorter than PIPE_BUF.
struct StartReport {
  ProcessOf process;
  StartStage stage = StartStage::Exec;
  std::int32_t error = 0;
};

struct StartContext {
  const rundir::v1::Launch* launch = nullptr;
  // The environment that the setup left; null: there was no setup.
  const std::vector<std::string>* inherited = nullptr;
  // NAME=value, of the launch record's secrets; null: it has none.
  const std::vector<std::string>* secrets = nullptr;
  std::string process_tag;  // MUSTER_PROCESS_TAG=value
  // Logs and files of the setup are opened below it.
  std::string run_dir{};
  int run_dir_fd = -1;
  pid_t worker = 0;
  int null_fd = -1;
  int report_fd = -1;
  std::optional<rlimit> nofile;  // empty: as the worker's
  int cgroup_dir_fd = -1;        // -1: none
  // used with cgroup_dir_fd, for kernels that cannot create a child in a group
  int cgroup_procs_fd = -1;
};

// Returns the environment of a process. Later parts override earlier ones:
//   - a rank: what the setup left, the common environment, secrets, the rank's own, the process tag
//   - an auxiliary process: what the setup left, its own, secrets, the process tag
//   - the setup: the common environment, secrets, the process tag
// The pointers point into the context.
std::vector<const char*> environment_of(const StartContext& context, const ProcessOf& process);

// Returns only in the worker. If the kernel can, it creates the process inside the cgroup (clone3).
// Joining the cgroup later waits for an RCU grace period: 5 to 13 ms for the first process of an
// attempt (tests/bench/RESULTS.md). Errors: the fork itself failed.
Result<pid_t> start_process(const StartContext& context, const ProcessOf& process);

// "executing '/x': No such file or directory"; for an auxiliary process "starting auxiliary process
// 'scheduler': executing ...".
std::string describe(const StartReport& report, const rundir::v1::Launch& launch);

}  // namespace muster::worker
