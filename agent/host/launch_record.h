// From the controller's NodeLaunch to the worker's launch record: the whole environment of every
// rank, argv[0] as an absolute path, the user's numbers. Reads the user table and looks programs
// up; writes nothing. Any thread.
//
// The environment: nothing is inherited from the agent but PATH. These are there before the
// launch's own variables, which may replace all but the last:
//   PATH              the agent's; without one
//                     /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
//   HOME USER LOGNAME of the user that the ranks run as
//   LANG              C.UTF-8
//   PYTHONUNBUFFERED  1: a rank's last lines must be in its file when it dies
//   MUSTER_PROCESS_TAG     what a sweep looks for
// A rank of which the order says so has ASCEND_PROCESS_LOG_PATH, a directory of the run's, which no
// other user than the agent's could reach. A script a node (launch.per: node) that calls launchers
// has MUSTER_SHIM_* and functions of bash besides (shim_dir.h), and the worker puts the shim's
// directory first on its PATH.
// An auxiliary process has the same, and what the order sets for it in place of what it sets for
// the ranks.
//
// In a container PATH is the default one and HOME is /root (/tmp for another user), and what the
// image's own configuration sets is over all of the base.
//
// With runtime.setup these are what the setup begins with, beside the order's common variables; the
// record's own environments are the order's alone, and the worker puts them over what the setup
// left. Programs are then looked for by the worker, on the PATH that the ranks will have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/reconcile.h"
#include "common/base/error.h"
#include "common/engine/engine.h"
#include "common/rundir/layout.h"
#include "muster/rundir/v1/rundir.pb.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// bash where there is one: people write `source` and arrays.
inline constexpr const char* kSetupShells[] = {"/bin/bash", "/bin/sh"};
inline constexpr const char* kEnvProgram = "/usr/bin/env";

struct UserEntry {
  std::string name, home;
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::uint32_t> groups;
};
// Empty name: the agent's own. Errors: no such user.
Result<UserEntry> find_user(const std::string& name);

struct LaunchContext {
  RunKey run;
  NodeName node;
  BootId boot;
  std::string process_tag;
  std::string cgroup;  // empty: none
  UserEntry user;
  bool set_user = false;  // another than the agent's own
  std::string path;       // the agent's own PATH; empty: it has none
  std::string python_system{engine::kPythonSystem};
  const rundir::RunLayout* layout = nullptr;
  // the muster-worker binary, which by other names is the launcher shim
  std::filesystem::path worker;
  // Of a run in a container: the variables of its image. HOME and PATH are then the container's,
  // and programs are looked for by the worker inside.
  std::optional<std::vector<std::string>> image_env{};
};
// Errors (InvalidArgument) name the rank or auxiliary process and the program that is not there.
Result<rundir::v1::Launch> make_launch(const v1::NodeLaunch& order, const LaunchContext& context);

// `program` as execvp would find it on `path`, from `cwd`. NotFound, NotAllowed (there, but not
// executable). With `user`: as that user would find it, by owner and mode of the file and of the
// directories above it; what root alone may enter is passed over.
Result<std::string> resolve_program(const std::string& program, const std::string& path,
                                    const std::string& cwd, const UserEntry* user = nullptr);

}  // namespace muster::agent
