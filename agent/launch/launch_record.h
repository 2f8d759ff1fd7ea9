// make_launch() turns the controller's NodeLaunch into the worker's launch record: the whole
// environment of every rank, argv[0] as an absolute path, the user's numbers. It keeps no state. It
// searches for programs and writes nothing; it may run on any thread.
//
// The environment: ranks inherit only PATH from the agent. These are set before the launch's own
// variables, which may replace all but the last:
//
//   PATH              the agent's; without one
//                     /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
//   HOME USER LOGNAME of the user that the ranks run as
//   LANG              C.UTF-8
//   PYTHONUNBUFFERED  1: a rank's last lines must be in its file when it dies
//   MUSTER_PROCESS_TAG     a sweep finds processes by it
//
// - If the order requests it, a rank has ASCEND_PROCESS_LOG_PATH: a directory in the run directory,
//   which only the agent's user can reach.
// - A node's script (launch.per: node) that calls launchers also has MUSTER_SHIM_* and bash
//   functions (shim_dir.h). The worker puts the shim's directory first on its PATH.
// - An auxiliary process has the same, with its own variables of the order instead of those of the
//   ranks.
// - In a container PATH is the default one and HOME is /root (/tmp for another user). The image's
//   own variables override all of these.
// - With runtime.setup, the setup begins with these and with the order's common variables. The
//   record then has only the order's variables, and the worker puts them over what the setup left.
//   The worker then searches for programs on the PATH that the ranks will have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/reconcile.h"
#include "agent/launch/user_entry.h"
#include "common/base/error.h"
#include "common/engine/model/engine.h"
#include "common/rundir/layout.h"
#include "muster/rundir/v1/rundir.pb.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// bash if it exists, because people write `source` and arrays
inline constexpr const char* kSetupShells[] = {"/bin/bash", "/bin/sh"};
inline constexpr const char* kEnvProgram = "/usr/bin/env";

struct LaunchContext {
  RunKey run;
  NodeName node;
  BootId boot;
  std::string process_tag;
  std::string cgroup;  // empty: none
  UserEntry user;
  bool set_user = false;  // a user other than the agent's own
  std::string path;       // the agent's own PATH; empty: it has none
  std::string python_system{engine::kPythonSystem};
  const rundir::RunLayout* layout = nullptr;
  // the muster-worker binary; under other names it is the launcher shim
  std::filesystem::path worker;
  // For a run in a container: the variables of its image. HOME and PATH are then the container's,
  // and the worker searches for programs inside the container.
  std::optional<std::vector<std::string>> image_env{};
};
// Errors (InvalidArgument) name the rank or auxiliary process, and the missing program.
Result<rundir::v1::Launch> make_launch(const v1::NodeLaunch& order, const LaunchContext& context);

// Finds `program` on `path` as execvp would from `cwd`. Errors: NotFound; NotAllowed (it exists,
// but is not executable). With `user`: as that user would find it, by owner and mode of the file
// and of the directories above it. What only root may enter is skipped.
Result<std::string> resolve_program(const std::string& program, const std::string& path,
                                    const std::string& cwd, const UserEntry* user = nullptr);

}  // namespace muster::agent
