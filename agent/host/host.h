// The node's runs: every run directory of this agent, kept up to date by wake FIFOs
// (common/rundir/wake_fifo.h) and pidfds, and the hands that do what reconcile() asks. Owns the run
// directories (all but what the worker writes), the workers it spawned until it reaps them, and the
// sweeps under way.
//
// Strand: every method and every callback on the loop it was opened with. No polling: a worker's
// exit record, claim or death wakes it. Only live runs without a wake FIFO are looked at every
// kScanInterval.
// Promises: what seen() shows is on disk (or, when the disk refuses, in memory until it is: a
// refusal is never lost to a full disk in this life). A start is prepared on a thread of its own,
// which may hang: its run is "spawned" meanwhile, and can be stopped.
// A worker that does not obey is killed: one that was told to stop and has not said Swept by its
// grace and worker_margin more, or whose lease is over and that has not written its stop. It is
// frozen, or as good as that; its ranks die with it, and the run is swept as after any death of a
// worker. An action that the disk or the kernel refuses is told as trouble and is asked for again
// by the next reconcile().
// Leaves to others: what to do (agent/core), what the logs say (agent/watch), telling the
// controller (agent/link).
// Start: open() reads and watches, starts nothing. Stop: close(), before the loop stops; workers
// and ranks stay.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/core/reconcile.h"
#include "agent/host/start_prepare.h"
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
  // PATH of this agent, which ranks get unless the job sets its own
  std::string path;
  std::optional<std::filesystem::path> cgroup_base;  // runs get a group below it
  std::set<std::uint32_t> devices;
  NumaNodes numa_nodes;  // theirs, as far as they are known
  ContainerOptions container{};
  FetchFn fetch{};  // none: orders that need it are refused
  std::uint64_t min_free_bytes = 256ULL << 20U;
  Duration worker_margin = std::chrono::seconds(5);
  std::function<StartPrepared(StartRequest)> prepare = prepare_start;  // on a thread of its own
  const Clock* clock = &system_clock();
};

struct HostCallbacks {
  // seen() of that run is another; may be called from inside perform(): post, do not act
  std::function<void(const RunKey&)> changed;
  std::function<void(const std::string& text)> trouble;  // one line for the log
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
  // Of the launch record, without ranks, environments and files. A run that has lost its record,
  // and whose ranks are known all the same, has one that says no more than how its logs are read.
  // Null: there is nothing to be read.
  [[nodiscard]] const v1::NodeLaunch* order(const RunKey& run) const;
  [[nodiscard]] std::filesystem::path directory(const RunKey& run) const;
  // How far what it is set up with has come, "runtime.image: 3 of 7 layers"; empty: nothing of it
  // can be told. Changes without a callback.
  [[nodiscard]] std::string setup_text(const RunKey& run) const;
  [[nodiscard]] bool rank_end_known(const RunKey& run, std::uint32_t rank) const;

  // Idempotent: what is under way or done already is not begun again.
  void perform(const Action& action);

  // The controller was alive when the agent sent something at `heard`: every live run may go on for
  // its grace from then, and for a tenth of it more (a quarter of a grace below 10 s at most):
  // files are rewritten only when that much is gained.
  void renew_leases(BootTime heard);
  // What is left of the lease of a live run; with `refused_only` only where the disk did not let it
  // be renewed.
  [[nodiscard]] std::optional<Duration> lease_left(const RunKey& run, bool refused_only) const;

  // Remembered in the mark file, so that a restarted agent reports the same facts.
  void note_first_step(const RunKey& run, std::int64_t step);
  void note_rank_end(const RunKey& run, std::uint32_t rank, const std::string& evidence,
                     bool success_seen, v1::EvidenceKind kind = v1::EVIDENCE_KIND_UNSPECIFIED,
                     std::optional<std::int64_t> step = {}, std::optional<std::int64_t> total = {});

 private:
  struct Entry;
  struct Impl;
  explicit Host(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Where runs get their control groups. `wanted`: "auto" (this process's own group), "none", or a
// directory of a writable cgroup v2 tree. The base is muster-<node>-<instance> in it: agents of one
// name, or of one directory, do not share one. It is made with the first run and goes with the
// last; only tried here. Empty bases that this instance had under another node name are removed.
// Nothing with a sentence why: sweeps then go by process tag. Error: a directory was named and
// cannot be
// used.
struct CgroupChoice {
  std::optional<std::filesystem::path> base;
  std::string note;
};
Result<CgroupChoice> choose_cgroup_base(const std::string& wanted, const NodeName& node,
                                        const InstanceId& instance);

}  // namespace muster::agent
