// reconcile() and the functions next to it decide what the agent does. Pure.
//
// The edges (agent/run, agent/link) observe run directories and processes, call reconcile(), carry
// out its actions, and observe again. A crash between any two steps is an ordinary start.
//
// Rules that are kept here:
//
//   start once        A run directory is made once, on the boot and instance that the placement
//                     names, else the start fails as `gone`. A claimed run directory is never
//                     started again. The same holds if an earlier incarnation of the agent
//                     spawned its worker and the worker may still claim it.
//   stop is explicit  Nothing is stopped because orders do not mention it.
//   swept is proven   A worker that died leaves processes, and a claim may have been lost. The
//                     agent sweeps by process tag before it reports the sweep. Only a changed boot
//                     id proves the sweep at once.
//   never start it    Stop for an attempt without a run directory makes a directory that can never
//                     start, and reports it swept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/time.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

using RunKey = std::pair<JobId, AttemptNo>;

enum class WorkerState : std::uint8_t {
  None,  // run directory without claim; this incarnation starts no worker for it
  // This incarnation of the agent prepares its start or has spawned its worker, and the worker has
  // not claimed the run yet.
  Spawned,
  Alive,  // claimed; pid, start time and boot id match a living process
  Dead,   // claimed once; that process has ended
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
  // The same moment by the boot clock. It shows which exit came first even if the wall clock is set
  // meanwhile.
  BootTime boot{};
  std::string evidence;  // the agent's own mark: what agent/logs found in the rank's log
  v1::EvidenceKind evidence_kind = v1::EVIDENCE_KIND_UNSPECIFIED;
  bool success_seen = false;  // the agent's own mark
  // the agent's own mark: the last step in the rank's log, and the total number of steps
  std::optional<std::int64_t> step, total;
  // for a node's script: the rank inside the script whose end caused this exit
  std::optional<std::uint32_t> training_rank;
};

// What agent/logs found in a rank's log after its end: the agent's own marks.
struct RankMarks {
  std::string evidence;
  v1::EvidenceKind kind = v1::EVIDENCE_KIND_UNSPECIFIED;
  bool success_seen = false;
  std::optional<std::int64_t> step, total;

  void show(ExitSeen& exit) const {
    exit.evidence = evidence;
    exit.evidence_kind = kind;
    exit.success_seen = success_seen;
    exit.step = step;
    exit.total = total;
  }
};

// The first launch inside a node's script that would have saved checkpoints.
struct ScriptLaunchSeen {
  std::uint32_t first_rank = 0, ranks = 0;
  std::string save;  // absolute
  bool weights_alone = false;
  WallTime at{};
};

// The end of an auxiliary process, one per name. It is reported when its evidence is known.
struct AuxiliaryExitSeen {
  std::string name;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  bool stop_requested = false;
  WallTime at{};
  BootTime boot{};
  std::string evidence;
};

// A file that receives the output of one training rank of a node's script (launch.per: node).
struct ScriptLogSeen {
  // name of the auxiliary log that it becomes: "rank-5"; "rank-5-2" for that rank's next file
  std::string name;
  std::uint32_t rank = 0;                 // number of the training rank
  std::uint64_t pid = 0, start_time = 0;  // the process that wrote it when it was seen
  // any path that a process can have as its stdout: not trusted
  std::string path;
  // For a run in a container: the part of the path that comes from the mount and not from the job.
  // Empty: none.
  std::string mount;
  // The process whose root directory the path is below. For a run in a container this is the
  // worker, if the path is not mounted from the node. 0: the node's own root.
  std::uint64_t root_pid = 0, root_start_time = 0;
  struct User {
    std::uint32_t uid = 0, gid = 0;
    std::vector<std::uint32_t> groups;
  };
  std::optional<User> user;  // whose rights open it; none: the agent's own
};

// The state of one run directory, as read (common/rundir) and checked against the process table.
struct RunSeen {
  bool launch_sound = false;  // the launch record exists and is readable
  BootId boot_id;             // from the launch record
  WorkerState worker = WorkerState::None;
  bool worker_spoke = false;  // it wrote events, so it had the claim
  std::uint64_t worker_pid = 0;
  // from the launch record; for a swept run without one: the ranks that left a trace
  std::vector<std::uint32_t> ranks;
  // From the launch record. A run whose record cannot be read has none: processes on its cards
  // count as those of a stranger.
  std::set<std::uint32_t> devices;
  std::map<std::uint32_t, std::uint64_t> pids;
  v1::NodeResolved resolved;  // from the launch record: what this node added to the order
  bool started = false;
  WallTime started_at{};
  std::optional<std::string> start_failed;  // the worker could not exec
  int start_failed_error = 0;               // its errno; 0: none
  WallTime start_failed_at{};
  bool stop_requested = false;
  std::map<std::uint32_t, ExitSeen> exits;
  std::vector<AuxiliaryExitSeen> auxiliary_exits;
  std::optional<ScriptLaunchSeen> script_launch;
  std::vector<ScriptLogSeen> script_logs;  // in the order in which they were seen; only grows
  // its start has reached a step that takes long (code, fetch, container) or will fetch or load an
  // image, or it runs runtime.setup
  bool setting_up = false;
  // from the worker's last event, or from the agent's own mark after a sweep
  bool swept = false;
  // The worker itself wrote that it is swept, so no start is missing: a rank without a start record
  // never ran.
  bool swept_by_worker = false;
  v1::SweptWhy swept_why{};
  WallTime swept_at{};
  // the agent's own mark: the run never started, and why
  std::optional<std::pair<v1::StartFailure, std::string>> refused;
  // what the start read of checkpoints, if that is the reason
  v1::CheckpointReading refused_for;
  std::string refused_step;  // the word of the start's step that failed; empty: none
  WallTime refused_at{};
  // the agent's own mark: the attempt's first step as seen on this node
  std::optional<std::int64_t> first_step;
  WallTime first_step_at{};
  // Its order has outputs to upload, and logs.
  bool uploads = false, uploads_logs = false;
  // the agent's own marks: an upload has ended (v1.OutputsUploaded)
  struct Removed {  // as in v1.RemoteCheckpoint
    std::uint32_t attempt = 0;
    std::int64_t step = 0;
  };
  struct Outputs {
    std::uint64_t files = 0, bytes = 0;
    std::string problem;
    std::optional<std::int64_t> step = {};
    bool seal = false;
    std::string sums_sha256 = {};
    bool logs = false;
    std::vector<Removed> removed = {};
    std::string not_removed = {};
    WallTime at{};
  };
  std::optional<Outputs> outputs;   // of everything, after the sweep
  std::optional<Outputs> logs_end;  // of all logs, after the sweep
  // Of the newest checkpoint of which that is known.
  std::optional<Outputs> checkpoint_sent, checkpoint_sealed;
  void note_outputs(const Outputs& ended) {
    if (ended.logs) {
      if (!logs_end) logs_end = ended;
      return;
    }
    if (!ended.step) {
      if (!outputs) outputs = ended;
      return;
    }
    std::optional<Outputs>& newest = ended.seal ? checkpoint_sealed : checkpoint_sent;
    if (!newest || *newest->step < *ended.step) newest = ended;
  }
  // the agent's own mark: how far the node's wall clock was ahead of the controller's
  std::optional<Duration> clock_ahead;
  WallTime clock_ahead_at{};
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
};  // make a directory that never starts, and that says why
struct SignalStop {
  RunKey run;
};  // SIGTERM to the worker, once; the worker does the rest
struct SweepRun {
  RunKey run;
  v1::SweptWhy why;
};  // kill all processes with the process tag, then mark the run swept
struct MarkSwept {
  RunKey run;
  v1::SweptWhy why;
};  // proven by another boot, without a sweep
struct ForgetRun {
  RunKey run;
};  // remove the directory
using Action = std::variant<StartRun, RefuseRun, SignalStop, SweepRun, MarkSwept, ForgetRun>;

// RefuseRun with START_FAILURE_UNSPECIFIED refuses without blame: the run was stopped before it
// started. facts_of() then reports no start failure.
//
// `orders`: the latest from the controller. nullptr: none has come yet, and only proofs are
// gathered (MarkSwept, SweepRun).
//
// `starting_up`: true for the first call of this incarnation. The worker of an earlier incarnation
// may be about to claim a directory without a claim. So the agent claims it first (RefuseRun). The
// run is adopted only if the worker was quicker.
std::vector<Action> reconcile(const Self& self, const v1::Orders* orders,
                              const std::map<RunKey, RunSeen>& seen, bool starting_up);

// Returns what is ordered when `next` comes after `earlier`, both from one connection. The result
// has all of `next`, and those runs of `earlier` that `next` does not mention and that do not exist
// yet. Each message lists all stops and forgets. A run order is sent only once, in its own message.
v1::Orders merged(v1::Orders earlier, v1::Orders next, const std::map<RunKey, RunSeen>& seen);

// Returns the attempts whose orders are of an unknown kind, each once. reconcile() does not touch
// them if they exist, and does not start the others.
std::vector<RunKey> unsupported(const v1::Orders& orders);

// Returns every fact that this run directory proves, oldest first. The marks with `evidence` and
// `success_seen` come later, from what agent/logs finds.
//
// The end of an auxiliary process is a fact only if it breaks the attempt: it ended badly, before a
// stop, while ranks of this node still ran.
//
// A rank without an exit record in a swept directory is reported lost. If the directory was
// refused, it is not, because then no rank ever ran.
//
// The same directory always gives the same facts.
std::vector<v1::Fact> facts_of(const RunKey& run, const RunSeen& seen);

// Sets how long ago each fact happened, for facts that are sent at `now`. Ends on this boot use the
// boot clock, which nobody can set. All other facts use the wall clock.
void set_ages(v1::Facts& facts, const Self& self, const std::map<RunKey, RunSeen>& seen, Now now);

}  // namespace muster::agent
