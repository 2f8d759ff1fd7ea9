// Agent is the main loop of the process: it observes (host, watch), decides (agent/core), acts
// (host) and reports (link). main() creates and destroys it, and it owns all state of the agent.
// Its handlers run on one async::Loop; other threads post to that loop.
//
//   start:  host opened -> watch -> found runs are watched -> reconcile(no orders, starting up) ->
//           log push -> devices that an earlier incarnation announced, or the first probe -> link
//   turn:   something changed -> facts of that run are sent -> reconcile -> actions -> (their
//           effects are changes)
//   probe:  at intervals, on its own thread: readings go with the next heartbeat; changed devices
//           cause a new Hello
//   news:   of the kernel's network interfaces and routes: a change causes a new Hello
//   stop:   prober, link, log push, watch, host. Workers and ranks stay; a later start adopts them.
//
// Bounds:
//
// - An exit waits at most 1 s for its evidence or last step. It waits only milliseconds if machine
//   and file system work normally.
// - A good exit whose success is looked for waits until 10 s pass in which nothing of the run's
//   logs is read.
// - A sweep waits at most 15 s for the last scan of the run's checkpoints.
//
// Nothing polls here. The heartbeat is the only timer of an idle agent. A retry timer runs only
// while an action is outstanding.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "agent/core/controller_link.h"
#include "agent/core/outbox.h"
#include "agent/exit_wait.h"
#include "agent/link/file_stream.h"
#include "agent/link/link.h"
#include "agent/link/log_push.h"
#include "agent/logs/watch.h"
#include "agent/probe/device_book.h"
#include "agent/probe/interface_news.h"
#include "agent/probe/own_processes.h"
#include "agent/probe/prober.h"
#include "agent/run/host.h"
#include "agent/run/state_dir.h"
#include "common/async/loop.h"

namespace muster::agent {

struct AgentOptions {
  HostOptions host;
  // without devices if `probe` is set
  v1::Inventory inventory;
  // reads the network part of the inventory again; empty: that part never changes
  std::function<void(v1::Inventory&)> network;
  // how to probe devices; empty: the inventory already has all devices
  std::optional<probe::ProbeOptions> probe;
  Duration probe_interval{};  // zero: one probe only
  // The first Hello waits at most this long for the first probe. It does not wait if devices were
  // kept on disk.
  Duration first_probe_bound = std::chrono::seconds(21);
  std::string version;
  // unique per process, also among processes with a copy of the state directory
  std::string incarnation;
  WatchOptions watch;
  std::function<Result<rpc::Endpoint>()> endpoint;  // thread-safe
  // called on the loop when the controller can never accept this agent
  std::function<void(const Error&)> on_permanent;
  const Clock* clock = &system_clock();
};

// The devices of this node. They may change while a start is prepared on its own thread.
// Thread-safe.
class DeviceIds {
 public:
  void set(std::set<std::uint32_t> ids, NumaNodes numa_nodes) {
    const std::lock_guard lock(mutex_);
    ids_ = std::move(ids);
    numa_nodes_ = std::move(numa_nodes);
  }
  void fill(NodeFacts& facts) const {
    const std::lock_guard lock(mutex_);
    facts.devices = ids_;
    facts.numa_nodes = numa_nodes_;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::uint32_t> ids_;
  NumaNodes numa_nodes_;
};

class Agent {
 public:
  // `loop` must outlive the agent. Construct it off the loop, and destroy it after the loop has
  // stopped.
  Agent(async::Loop& loop, StateDir state, AgentOptions options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Blocks until the runs of earlier incarnations are adopted. The caller must then call stop(),
  // also after an error.
  Result<void> start();
  // Blocks. Workers and ranks stay.
  void stop();

 private:
  struct WatchedRun {
    bool added = false;             // the watch accepted it
    BootTime add_again{};           // when to ask the watch again
    std::string refused;            // reason of the refusal, logged once per cause
    std::set<std::uint32_t> ended;  // ranks whose end was sent to the watch
    std::size_t followed = 0;       // number of its script's logs that the watch follows
    bool swept_notified = false;
    std::map<std::uint32_t, ExitWait> asked;  // ranks whose logs are read to their end
    // the fact of the sweep waits until then for the last scan of the checkpoints
    BootTime swept_waits{};
    std::optional<std::set<std::uint32_t>> devices;  // from its launch record, read once
  };

  Result<void> open();
  Result<void> start_devices();
  bool restore_devices();
  [[nodiscard]] Duration hello_bound() const;
  void on_probed(probe::Probed probed);
  void announce_devices();
  void keep_devices();
  void store_devices();
  void say_findings();
  void note_own_processes();
  const std::set<std::uint32_t>& devices_of(const RunKey& run);
  void watch_network();
  void probe_network_after(Duration after);
  void probe_network();
  void listen_to_network();
  void start_link();
  void start_log_push();

  // Handlers of local events.
  void run_changed(const RunKey& run);
  void turn();
  void add_to_watch(const RunKey& run, const RunSeen& seen, WatchedRun& watched);
  void tell_watch(const RunKey& run, const RunSeen& seen);
  void last_scan(const RunKey& run);
  void gather(const RunKey& run, const RunSeen& seen);
  [[nodiscard]] bool scanned(const RunKey& run) const;
  [[nodiscard]] bool ready(const RunKey& run, const v1::RankExited& exited) const;
  void arm_evidence_timer();
  void flush();
  void reconcile_now();
  void forget(const RunKey& run);

  // Handlers of messages from the controller, and what is sent to it.
  v1::Hello hello() const;
  Result<void> on_welcome(const v1::Welcome& welcome, BootTime hello_sent);
  void on_orders(v1::Orders orders);
  void on_fact_ack(const v1::FactAck& ack);
  void on_heartbeat_ack(const v1::HeartbeatAck& ack);
  void on_down();
  bool on_refused(const Error& error, bool other_cluster);
  void heartbeat();
  void heartbeat_soon();
  void identity_stored(const Identity& identity);
  void obey();
  void store_identity(bool now);
  void probe_disk();
  [[nodiscard]] std::string disk_text() const;

  async::Loop& loop_;
  async::Loop disk_;  // for synced writes of the identity
  AgentOptions options_;
  std::shared_ptr<StateDir> state_;  // used on disk_ after the first connection
  ControllerLink controller_;        // its identity may be ahead of the disk
  bool identity_dirty_ = false;
  std::optional<BootTime> disk_probed_at_;
  bool disk_probing_ = false;
  // errno of the last write test on the state directory's disk; 0: the disk takes writes
  int disk_error_ = 0;

  std::unique_ptr<Host> host_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<LogPush> log_push_;
  std::unique_ptr<Link> link_;
  std::shared_ptr<FileStreams> files_;  // shared with the threads of starts

  std::unique_ptr<probe::Prober> prober_;
  probe::DeviceBook devices_;
  // Shared with the threads of the prober and of starts.
  std::shared_ptr<probe::OwnProcesses> own_processes_ = std::make_shared<probe::OwnProcesses>();
  std::shared_ptr<DeviceIds> device_ids_ = std::make_shared<DeviceIds>();
  std::vector<std::string> findings_logged_;
  std::uint64_t probes_ = 0;
  // when this incarnation last announced devices
  std::optional<BootTime> announced_at_;
  // what is in the file, or will be in it soon
  std::string kept_;
  // set on disk_'s thread
  std::shared_ptr<std::atomic<bool>> keeping_failed_ = std::make_shared<std::atomic<bool>>(false);

  std::optional<InterfaceNews> interface_news_;
  std::unique_ptr<async::Readable> news_ready_;
  std::optional<BootTime> network_reported_at_;  // since the start
  bool network_waits_ = false;                   // network_timer_ is armed

  Outbox outbox_;
  std::map<RunKey, WatchedRun> watched_;
  std::set<RunKey> dirty_;
  bool turn_posted_ = false;
  bool gathering_ = false;  // gather_timer_ is armed
  bool starting_up_ = true;
  bool stopped_ = false;

  Duration heartbeat_interval_ = std::chrono::seconds(1);
  BootTime heartbeat_sent_at_{};
  // runs with too many shards for a heartbeat, already logged
  std::set<RunKey> trimmed_;

  async::Timer heartbeat_timer_, gather_timer_, evidence_timer_, retry_timer_, identity_timer_,
      first_probe_timer_, network_timer_;

  std::mutex log_hello_mutex_;
  // read by log push's thread; empty while the control stream is down
  std::optional<v1::LogHello> log_hello_;
};

}  // namespace muster::agent
