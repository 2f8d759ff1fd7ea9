// Host keeps the node's runs: it follows every run directory of this agent and carries out what
// reconcile() requests. The Agent opens and destroys it. Every method and every callback runs on
// the loop that it was opened with.
//
// Host owns the run directories (all but what the worker writes), the workers that it spawned until
// it reaps them, and the sweeps in progress. Wake FIFOs (common/rundir/wake_fifo.h) and pidfds keep
// its view current.
//
// - A worker's exit record, claim or death wakes the Host. It scans a run every kScanInterval only
//   if the run is live without a wake FIFO, or could not be read.
// - What seen() shows is on disk. If the disk refuses, it is in memory until the disk takes it: a
//   full disk never loses a refusal during this incarnation.
// - A start runs as a list of steps (agent/start/start_step.h) on its own thread, which may hang.
//   Meanwhile the run is "spawned" and can be stopped. If a step hangs beyond its bound, the start
//   is refused.
// - A worker that does not obey is killed. In the first case it was asked to stop and has not
//   written Swept within its grace plus worker_margin. In the second case its lease is over and it
//   has not written its stop. Such a worker is frozen, or behaves like one. Its ranks die with it,
//   and the run is swept as after any death of a worker.
// - If the disk or the kernel refuses an action, Host reports trouble, and the next reconcile()
//   requests the action again.
// - Host does not decide what to do (agent/core), read the ranks' logs (agent/logs), or report to
//   the controller (agent/link).
// - open() reads and watches, and starts nothing. Call close() before the loop stops. Workers and
//   ranks stay.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/core/reconcile.h"
#include "agent/logs/watch.h"
#include "agent/start/start_runner.h"
#include "common/async/loop.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/rundir/layout.h"

namespace muster::agent {

inline constexpr Duration kScanInterval = std::chrono::milliseconds(50);

struct HostOptions {
  rundir::AgentLayout layout;
  Self self;
  NodeName node;
  // empty until joined: nothing is started before
  ClusterId cluster;
  std::filesystem::path worker;  // the muster-worker binary
  // PATH of this agent; ranks get it unless the job sets its own
  std::string path;
  std::optional<std::filesystem::path> cgroup_base;  // runs get a group below it
  std::set<std::uint32_t> devices;
  NumaNodes numa_nodes;  // of the devices, as far as known
  ContainerOptions container{};
  FetchFn fetch{};            // none: orders that need it are refused
  SecretsFn fetch_secrets{};  // none: the same
  std::uint64_t min_free_bytes = 256ULL << 20U;
  Duration worker_margin = std::chrono::seconds(5);
  // Follows the logs and checkpoints of the runs; it outlives the Host. Null: nothing is followed,
  // and no fact waits for it.
  Watch* watch = nullptr;
  // Called on the thread of each start, for facts that change. Thread-safe. Empty: none do.
  std::function<void(NodeFacts&)> fill_facts{};
  StartRunner::Options starts{};
  const Clock* clock = &system_clock();
};

struct HostCallbacks {
  // seen() of that run has changed. It may be called inside perform(): post, do not act.
  std::function<void(const RunKey&)> changed;
  std::function<void(const std::string& text)> trouble;  // one line for the log
};

struct StartNews {
  std::string step;  // its word; empty: nothing is being started
  std::string text;  // "runtime.image: 3 of 7 layers"; empty: no progress is known
};

class Host {
 public:
  static Result<std::unique_ptr<Host>> open(async::Loop& loop, HostOptions options,
                                            HostCallbacks callbacks);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  void close();

  void set_cluster(const ClusterId& cluster);

  [[nodiscard]] const std::map<RunKey, RunSeen>& seen() const;
  [[nodiscard]] const RunSeen* seen(const RunKey& run) const;
  // facts_of() the run. A good exit whose success the watch has not answered says that it is
  // unknown; while the answer may still come, that exit is not reportable().
  [[nodiscard]] std::vector<v1::Fact> facts(const RunKey& run) const;
  [[nodiscard]] std::filesystem::path directory(const RunKey& run) const;
  // How far the run's start has come. It changes without a callback; `changed` is called when a
  // step begins that takes long.
  [[nodiscard]] StartNews start_news(const RunKey& run) const;

  // Idempotent: an action that is in progress or done is not begun again.
  void perform(const Action& action);

  // The controller was alive when the agent sent something at `heard`. From then on every live run
  // may continue for its grace plus a tenth of it (at most a quarter of a grace below 10 s). Files
  // are rewritten only when that much is gained.
  void renew_leases(BootTime heard);
  // The time that is left of the lease of a live run. With `refused_only`, only if the disk refused
  // the renewal.
  [[nodiscard]] std::optional<Duration> lease_left(const RunKey& run, bool refused_only) const;

  // The mark file keeps these, so that a restarted agent reports the same facts.
  void note_first_step(const RunKey& run, std::int64_t step);
  // For every run that has started and is not swept, once.
  void note_clock_skew(Duration ahead);
  void note_rank_end(const RunKey& run, std::uint32_t rank, const std::string& evidence,
                     bool success_seen, v1::EvidenceKind kind = v1::EVIDENCE_KIND_UNSPECIFIED,
                     std::optional<std::int64_t> step = {}, std::optional<std::int64_t> total = {});
  // An upload of the run has ended, now.
  void note_outputs(const RunKey& run, RunSeen::Outputs ended);
  // The order of a run whose launch record is sound, without ranks and files. Nullptr: there is
  // none.
  [[nodiscard]] const v1::NodeLaunch* order(const RunKey& run) const;
  // The watch has scanned the checkpoints of a swept run.
  void note_last_scan(const RunKey& run);

  // False: the fact waits for what the watch finds (run_reporting.h). When the wait is over,
  // `changed` is called.
  [[nodiscard]] bool reportable(const RunKey& run, const v1::RankExited& exited) const;
  [[nodiscard]] bool scanned(const RunKey& run) const;
  // True, once for a run: a heartbeat has no room for its checkpoints.
  bool first_trimmed(const RunKey& run);

 private:
  struct Entry;
  struct Impl;
  explicit Host(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Chooses where runs get their control groups. `wanted`: "auto" (this process's own group), "none",
// or a directory of a writable cgroup v2 tree.
//
// The base is muster-<node>-<instance> in that directory. So agents of one name, or of one
// directory, do not share a base. The first run makes it, and it goes with the last run; here it is
// only tried. Empty bases that this instance had under another node name are removed.
//
// Without a base the note says why, and sweeps use the process tag. Error: a directory was named
// and cannot be used.
struct CgroupChoice {
  std::optional<std::filesystem::path> base;
  std::string note;
};
Result<CgroupChoice> choose_cgroup_base(const std::string& wanted, const NodeName& node,
                                        const InstanceId& instance);

}  // namespace muster::agent
