// The agent's life: observe (host, watch), decide (agent/core), do (host), tell (link). Owns all of
// the agent's state; everything happens on one loop, others post to it.
//
//   start:  host opened -> watch -> runs found are watched -> reconcile(no orders, starting up) ->
//           log push -> devices that an earlier life announced, or the first look at them -> link
//   turn:   something changed -> facts of that run go out -> reconcile -> actions -> (their effects
//           are changes)
//   look:   now and then, by a thread of its own: readings go with the next heartbeat; other
//           devices,
//           with a new Hello
//   news:   of the kernel's network interfaces and routes: other ones, with a new Hello
//   stop:   prober, link, log push, watch, host. Workers and ranks stay; a later start adopts them.
//
// Bounds: an exit waits at most 1 s for its evidence or last step (milliseconds where machine and
// file system do as they should), a good one whose success is looked for until 10 s go by in which
// nothing of the run's logs was read, a sweep at most 15 s for the last look at the run's
// checkpoints. Nothing polls here: the heartbeat is the only timer of an idle agent, a retry timer
// runs
// only while an action is outstanding.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "agent/exit_wait.h"
#include "agent/host/host.h"
#include "agent/host/state_dir.h"
#include "agent/link/file_stream.h"
#include "agent/link/link.h"
#include "agent/link/log_push.h"
#include "agent/outbox.h"
#include "agent/probe/device_book.h"
#include "agent/probe/interface_news.h"
#include "agent/probe/own_processes.h"
#include "agent/probe/prober.h"
#include "agent/watch/watch.h"
#include "common/async/loop.h"

namespace muster::agent {

struct AgentOptions {
  HostOptions host;
  // without devices, where these are looked for
  v1::Inventory inventory;
  // reads anew what of it is the network's; none: that is never another
  std::function<void(v1::Inventory&)> network;
  // how they are; none: those of the inventory are all
  std::optional<probe::ProbeOptions> probe;
  Duration probe_interval{};  // zero: one look
  // the first Hello waits no longer for it, nor at all for devices that were kept
  Duration first_probe_bound = std::chrono::seconds(21);
  std::string version;
  // one of a kind a process, also among those with a copy of the state directory; empty: not told
  std::string incarnation;
  WatchOptions watch;
  std::function<Result<rpc::Endpoint>()> endpoint;  // thread-safe
  // this agent can never be taken by that controller; on the loop
  std::function<void(const Error&)> on_permanent;
  const Clock* clock = &system_clock();
};

// The devices of this node, which others may become while a start is prepared on a thread of its
// own. Thread-safe.
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
  // `loop` outlives it; made off the loop, destroyed after the loop has stopped.
  Agent(async::Loop& loop, StateDir state, AgentOptions options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Blocks until the runs of earlier lives are adopted. Then stop() must be called, also after an
  // error.
  Result<void> start();
  // Blocks. Workers and ranks stay.
  void stop();

 private:
  struct WatchedRun {
    bool added = false;             // the watch took it
    BootTime add_again{};           // it did not: asked again then
    std::string refused;            // why, said once a cause
    std::set<std::uint32_t> ended;  // ranks whose end the watch was told
    std::size_t followed = 0;       // of its script's logs, those that the watch was told
    bool swept_notified = false;
    std::map<std::uint32_t, ExitWait> asked;  // ranks whose logs are being read to their end
    // until then, for the last look at the checkpoints
    BootTime swept_waits{};
    std::optional<std::set<std::uint32_t>> devices;  // of its launch record, read once
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

  // What happened.
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

  // From the controller.
  v1::Hello hello() const;
  Result<void> on_welcome(const v1::Welcome& welcome, BootTime hello_sent);
  void on_orders(v1::Orders orders);
  void on_fact_ack(const v1::FactAck& ack);
  void on_heartbeat_ack(const v1::HeartbeatAck& ack);
  void on_down();
  bool on_refused(const Error& error, bool other_cluster);
  void heartbeat();
  void heartbeat_soon();
  void see_epoch(Epoch epoch);
  void epoch_stored(Epoch epoch);
  void obey(v1::Orders orders);
  void store_identity(bool now);
  void probe_disk();
  [[nodiscard]] std::string disk_text() const;

  async::Loop& loop_;
  async::Loop disk_;  // synced writes of the identity
  AgentOptions options_;
  std::shared_ptr<StateDir> state_;  // disk_'s, after the first connection
  Identity identity_;                // the loop's copy, may be ahead of the disk
  bool identity_dirty_ = false;
  Epoch stored_epoch_;  // on disk, or refused by it: the orders of a higher one wait
  std::optional<BootTime> disk_probed_at_;
  bool disk_probing_ = false;
  // errno with which the state directory's disk refused the last look; 0: it takes writes
  int disk_error_ = 0;

  std::unique_ptr<Host> host_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<LogPush> log_push_;
  std::unique_ptr<Link> link_;
  std::shared_ptr<FileStreams> files_;  // threads of starts share it

  std::unique_ptr<probe::Prober> prober_;
  probe::DeviceBook devices_;
  // For threads of the prober and of starts.
  std::shared_ptr<probe::OwnProcesses> own_processes_ = std::make_shared<probe::OwnProcesses>();
  std::shared_ptr<DeviceIds> device_ids_ = std::make_shared<DeviceIds>();
  std::vector<std::string> findings_logged_;
  std::uint64_t probes_ = 0;
  // whose readings the controller has; 0 with each connection
  std::uint64_t probe_acked_ = 0;
  // by this life
  std::optional<BootTime> announced_at_;
  // what is in the file, or is on its way there
  std::string kept_;
  // disk_'s thread tells
  std::shared_ptr<std::atomic<bool>> keeping_failed_ = std::make_shared<std::atomic<bool>>(false);

  std::optional<InterfaceNews> interface_news_;
  std::unique_ptr<async::Readable> news_ready_;
  std::optional<BootTime> network_reported_at_;  // since the start
  bool network_waits_ = false;                   // network_timer_ is armed

  std::optional<v1::Orders> orders_;          // of this connection, merged
  std::optional<v1::Orders> waiting_orders_;  // for their epoch to be stored; merged as well
  Outbox outbox_;
  std::map<RunKey, WatchedRun> watched_;
  std::set<RunKey> dirty_;
  bool turn_posted_ = false;
  bool gathering_ = false;  // gather_timer_ is armed
  bool starting_up_ = true;
  bool welcomed_once_ = false;
  bool stopped_ = false;
  std::string refused_orders_;    // said once a cause
  std::set<RunKey> unsupported_;  // told to this controller

  Duration heartbeat_interval_ = std::chrono::seconds(1);
  struct HeartbeatSent {
    BootTime at{};
    std::uint64_t mark = 0;    // of its readings
    std::uint64_t probed = 0;  // at the devices
  };
  std::uint64_t heartbeat_number_ = 0;
  std::uint64_t readings_acked_ = 0;  // mark; 0 with each connection
  BootTime heartbeat_sent_at_{};
  // of this connection, not acknowledged yet
  std::map<std::uint64_t, HeartbeatSent> heartbeats_sent_;
  // whose shards were too many for a heartbeat, and the log says so
  std::set<RunKey> trimmed_;

  async::Timer heartbeat_timer_, gather_timer_, evidence_timer_, retry_timer_, identity_timer_,
      first_probe_timer_, network_timer_;

  std::mutex log_hello_mutex_;
  // for log push's thread; nothing while the control stream is down
  std::optional<v1::LogHello> log_hello_;
  bool takes_auxiliary_logs_ = false;  // the controller, which said so in its newest Welcome
};

}  // namespace muster::agent
