// The actions that change a host: programs, link, configuration, credentials, start, stop, removal.
// Stateless functions over a Host; each may be repeated. Blocking.
//
// A file is written under another name, checked, synced, and renamed. So a broken connection leaves
// the old file or the new one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "deploy/rollout/host.h"
#include "deploy/rollout/manifest.h"
#include "deploy/rollout/programs.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {

// The file in a state directory that `up` made. Without it the directory may be somebody's: it
// keeps its mode, and `purge` keeps it.
inline constexpr std::string_view kStateMark = ".muster-deploy";
// Below a controller's state directory: what jobs write, unless their spec names another directory.
inline constexpr std::string_view kOutputsDir = "outputs";
// A line for sh: makes the state directory, mode 0700, with its mark, unless it is there.
std::string make_state_dir(const std::string& state_dir);

// Sends the program, compressed if the host has gzip. The host checks its digest.
Result<void> install_program(Host& host, const std::string& bin, const std::string& name,
                             const ProgramFacts& facts, const ProgramBytes& bytes, bool gzip);
Result<void> set_current(Host& host, const Places& places, const std::string& version);
// Asks the program of `version` whether it would start with this command line. Changes nothing.
Result<void> check_config(Host& host, const Wanted& wanted, const Places& places,
                          std::string_view version);
Result<void> write_config(Host& host, const Wanted& wanted, const Places& places);
// `credentials` is the text of a credentials file.
Result<void> write_credentials(Host& host, const Places& places, std::string_view credentials);
// Starts the daemon, or starts it again.
Result<void> start_daemon(Host& host, Role role, const Places& places);
// An error where the daemon runs, and its supervisor's program is gone.
Result<void> stop_daemon(Host& host, Role role, const Places& places);
struct RoleRemoval {
  bool purge = false;     // the state directory, too, if `up` made it
  bool outputs = false;   // with `purge`: also the outputs of jobs (kOutputsDir, `outputs_root`)
  bool end_jobs = false;  // with `purge`: kill what is left of jobs of the node; else an error
  bool programs = false;  // the programs and the link, unless the other role is on the host
  std::string node;       // agent: its name
  // Agent, with `purge`: where its check of the outputs left its own files, and its ranks theirs
  // (kOutputsDir below the controller's state directory, which another host has); empty: nowhere
  std::string outputs_root;
};
// Removes what `up` wrote for this role. `say` learns what a person should know: what stays though
// it was to go.
Result<void> remove_role(Host& host, Role role, const Deployed& deployed,
                         const RoleRemoval& removal,
                         const std::function<void(const std::string&)>& say = {});
// The last lines of the daemon's log, for a sentence. Empty: there is no log.
std::string log_end(Host& host, Role role, const Places& places);

}  // namespace muster::rollout
