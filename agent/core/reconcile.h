// The agent's brain: pure functions over values. The edges (agent/host, agent/link) observe run
// directories and processes, ask reconcile() what to do, do it, and observe again; a crash between
// any two steps is an ordinary start.
//
// Rules kept here:
//   start once       a run directory is made once, on the boot and instance that the placement
//                    names, else `gone`; a claimed run directory is never started again, neither is
//                    one whose worker was spawned by an earlier life of this agent and might still
//                    claim it
//   stop is explicit nothing is stopped because orders do not mention it
//   swept is proven  a worker that died leaves processes, and a claim may have been lost: the agent
//                    sweeps by process tag before it says so; a changed boot id alone proves it at
//                    once
//   never start it   Stop for an attempt without a run directory leaves a directory that can never
//                    start, then reports it swept
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

using RunKey = std::pair<JobId, AttemptNo>;

enum class WorkerState : std::uint8_t {
  None,  // run directory without claim, and no worker on its way in this life of the agent
  // on its way: this life of the agent prepares its start or has spawned it, and it has not claimed
  // yet
  Spawned,
  Alive,  // claimed; pid, start time and boot id match a living process
  Dead,   // claimed once; that process is gone
  Never,  // claimed by an agent to say "never start this"
};

struct ExitSeen {
  std::uint32_t rank = 0;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  bool stop_requested = false;
  bool oom = false;
  bool killed_unasked = false;  // SIGKILL after the stop was written, and before the worker's own
  WallTime at{};
  // the same moment; tells which came first, also when somebody sets the clock in between
  BootTime boot{};
  std::string evidence;  // the agent's own mark: what agent/watch found in the rank's log
  v1::EvidenceKind evidence_kind = v1::EVIDENCE_KIND_UNSPECIFIED;
  bool success_seen = false;  // the agent's own mark
  // the agent's own mark: the last step that the rank's log tells, and of how many
  std::optional<std::int64_t> step, total;
  // of a node's script: the rank inside it whose end this was
  std::optional<std::uint32_t> training_rank;
};

// The first launch inside a node's script that would have saved somewhere.
struct ScriptLaunchSeen {
  std::uint32_t first_rank = 0, ranks = 0;
  std::string save;  // absolute
  bool weights_alone = false;
  WallTime at{};
};

// Of an auxiliary process, one a name; told once its evidence is known.
struct AuxiliaryExitSeen {
  std::string name;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  bool stop_requested = false;
  WallTime at{};
  BootTime boot{};
  std::string evidence;
};

// A file into which a node's script sends the output of a rank of the training (launch.per: node).
struct ScriptLogSeen {
  // of the log beside the ranks' that it becomes: "rank-5"; "rank-5-2" of the next file of that
  // rank
  std::string name;
  std::uint32_t rank = 0;                 // of the training
  std::uint64_t pid = 0, start_time = 0;  // that was seen writing it
  // anything that a process can have for its stdout: hostile
  std::string path;
  // of a run in a container: what of the path is the mount's, and not the job's word; empty: none
  std::string mount;
  // Whose root the path is below: the worker, of a run in a container, for what is not mounted into
  // that from the node. 0: the node's own.
  std::uint64_t root_pid = 0, root_start_time = 0;
  struct User {
    std::uint32_t uid = 0, gid = 0;
    std::vector<std::uint32_t> groups;
  };
  std::optional<User> user;  // whose rights it is opened with; none: the agent's own
};

// One run directory, as read (common/rundir) and checked against the process table.
struct RunSeen {
  bool launch_sound = false;  // the launch record is there and readable
  BootId boot_id;             // of the launch
  WorkerState worker = WorkerState::None;
  bool worker_spoke = false;  // it has written events: it had the claim
  std::uint64_t worker_pid = 0;
  // of the launch; of a swept run that has lost it, those that left a trace
  std::vector<std::uint32_t> ranks;
  std::map<std::uint32_t, std::uint64_t> pids;
  v1::NodeResolved resolved;  // of the launch: what this node added to the order
  bool started = false;
  WallTime started_at{};
  std::optional<std::string> start_failed;  // worker could not exec
  int start_failed_error = 0;               // errno of it; 0: none
  WallTime start_failed_at{};
  bool stop_requested = false;
  std::map<std::uint32_t, ExitSeen> exits;
  std::vector<AuxiliaryExitSeen> auxiliary_exits;
  std::optional<ScriptLaunchSeen> script_launch;
  std::vector<ScriptLogSeen> script_logs;  // in the order in which they were seen; only grows
  // runtime.image is being brought, or runtime.setup is under way
  bool setting_up = false;
  // the worker's last word, or the agent's own mark after a sweep
  bool swept = false;
  // which leaves out nothing: a rank whose start it has not written down never ran
  bool swept_by_worker = false;
  std::string swept_reason;
  WallTime swept_at{};
  // the agent's own mark: never started, and why
  std::optional<std::pair<v1::StartFailure, std::string>> refused;
  // what it had read of checkpoints, where that is why
  v1::CheckpointReading refused_for;
  WallTime refused_at{};
  // the agent's own mark: the attempt's first step as seen on this node
  std::optional<std::int64_t> first_step;
  WallTime first_step_at{};
};

struct Self {
  InstanceId instance;
  BootId boot_id;
};

// --- actions -------------------------------------------------------------------------------------
struct StartRun {
  RunKey run;
  v1::NodeLaunch launch;
};  // make the directory, then spawn the worker
struct RefuseRun {
  RunKey run;
  v1::StartFailure why;
  std::string text;
};  // leave a directory that never starts, and says why
struct SignalStop {
  RunKey run;
};  // SIGTERM to the worker, once; it does the rest
inline constexpr const char* kWorkerDied = "worker died";
// so that the worker could not say how its ranks ended
inline constexpr const char* kDiskRefused = "disk refused writes";
struct SweepRun {
  RunKey run;
  std::string reason;
};  // kill what carries the process tag, until none; then mark swept
struct MarkSwept {
  RunKey run;
  std::string reason;
};  // proven without looking: another boot
struct ForgetRun {
  RunKey run;
};  // remove the directory
using Action = std::variant<StartRun, RefuseRun, SignalStop, SweepRun, MarkSwept, ForgetRun>;

// RefuseRun with START_FAILURE_UNSPECIFIED refuses without blame: stopped before it was started;
// facts_of() then reports no start failure.
//
// `orders`: the latest from the controller, none yet = nullptr (then only proofs are gathered:
// MarkSwept, SweepRun).
// `starting_up`: true for the first call of this life: a directory without claim may have a worker
// of the last life on its way; it is claimed by the agent first (RefuseRun), and only if the worker
// was quicker it is adopted.
std::vector<Action> reconcile(const Self& self, const v1::Orders* orders,
                              const std::map<RunKey, RunSeen>& seen, bool starting_up);

// What is ordered once `next` has come behind `earlier`, both of one connection: all of `next`, and
// the runs of `earlier` that it does not mention and that are not there yet. What is to be stopped
// and forgotten is whole in each message; a run is said once, in a message of its own.
v1::Orders merged(v1::Orders earlier, v1::Orders next, const std::map<RunKey, RunSeen>& seen);

// Attempts of whose orders this agent does not know the kind, each once. reconcile() leaves what
// there is of them alone, and starts none of the others.
std::vector<RunKey> unsupported(const v1::Orders& orders);

// Every fact that this run directory proves, oldest first. `evidence` and `success_seen` are filled
// in by agent/watch later.
// An auxiliary process's end is one where it breaks the attempt: badly, before a stop, while ranks
// of this
// node still ran. A rank without an exit record in a swept directory is reported lost, unless the
// directory was refused (then no rank ever was). The same directory always gives the same facts.
std::vector<v1::Fact> facts_of(const RunKey& run, const RunSeen& seen);

// How long ago each of them happened, for facts that are sent `now`. Ends of this boot by the clock
// that nobody sets, everything else by the wall clock.
void set_ages(v1::Facts& facts, const Self& self, const std::map<RunKey, RunSeen>& seen, Now now);

}  // namespace muster::agent
