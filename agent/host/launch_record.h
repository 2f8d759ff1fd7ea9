// From the controller's NodeLaunch to the worker's launch record: the whole environment of every rank, argv[0] as an absolute path, the user's
// numbers. Reads the user table and looks programs up; writes nothing. Any thread.
//
// The environment: nothing is inherited from the agent. These are there before the launch's own variables, which may replace all but the last:
//   PATH              /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
//   HOME USER LOGNAME of the user that the ranks run as
//   LANG              C.UTF-8
//   PYTHONUNBUFFERED  1: a rank's last lines must be in its file when it dies
//   MUSTER_COOKIE     what a sweep looks for
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/reconcile.h"
#include "common/base/error.h"
#include "common/rundir/layout.h"
#include "muster/rundir/v1/rundir.pb.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

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
  std::string cookie;
  std::string cgroup;  // empty: none
  UserEntry user;
  bool set_user = false;  // another than the agent's own
  const rundir::RunLayout* layout = nullptr;
};
// Errors (InvalidArgument) name the rank and the program that is not there.
Result<rundir::v1::Launch> make_launch(const v1::NodeLaunch& order, const LaunchContext& context);

// `program` as execvp would find it on `path`, from `cwd`. NotFound, NotAllowed (there, but not executable).
Result<std::string> resolve_program(const std::string& program, const std::string& path, const std::string& cwd);

}  // namespace muster::agent
