// Agent is the main loop of the process: it observes (host, watch), decides (agent/core), acts
// (host) and reports (link). main() creates and destroys it, and it owns all state of the agent.
// Its handlers run on one async::Loop; other threads post to that loop.
//
//   start:  watch -> host opened, found runs are watched -> reconcile(no orders, starting up) ->
//           log push -> devices that an earlier incarnation announced, or the first probe -> link
//   turn:   something changed -> facts of that run are sent -> reconcile -> actions -> (their
//           effects are changes)
//   probe:  at intervals, on its own thread: readings go with the next heartbeat; changed devices
//           cause a new Hello
//   news:   of the kernel's network interfaces and routes: a change causes a new Hello
//   outputs: the directory that the controller names is checked, on a thread of its own; what
//            changes goes with the next heartbeat
//   stop:   prober, host, link, log push, watch. Workers and ranks stay; a later start adopts them.
//
// Nothing polls here. The heartbeat is the only timer of an idle agent. A retry timer runs only
// while an action is outstanding.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/core/controller_link.h"
#include "agent/core/outbox.h"
#include "agent/link/file_stream.h"
#include "agent/link/link.h"
#include "agent/link/log_push.h"
#include "agent/link/secret_fetch.h"
#include "agent/link/store_reports.h"
#include "agent/logs/watch.h"
#include "agent/outputs/uploads.h"
#include "agent/probe/device_book.h"
#include "agent/probe/interface_news.h"
#include "agent/probe/outputs_watch.h"
#include "agent/probe/own_processes.h"
#include "agent/probe/prober.h"
#include "agent/run/host.h"
#include "agent/run/state_dir.h"
#include "common/async/loop.h"
#include "common/base/mutex.h"
#include "common/base/once_per_cause.h"
#include "common/base/single_flight.h"

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
  std::string cgroup_trouble;  // why runs get no control groups; empty: they get them
  // unique per process, also among processes with a copy of the state directory
  std::string incarnation;
  WatchOptions watch;
  std::function<Result<rpc::Endpoint>()> endpoint;  // thread-safe
  // called on the loop when the controller can never accept this agent
  std::function<void(const Error&)> on_permanent;
  // The CAs that the controller names; on the loop. Empty: nobody is interested.
  std::function<void(v1::Authorities)> on_authorities = {};
  // A try to connect brought no answer; on the loop. Empty: nobody is interested.
  std::function<void()> on_unreached = {};
  const Clock* clock = &system_clock();
};

// The devices of this node. They may change while a start is prepared on its own thread.
// Thread-safe.
class DeviceIds {
 public:
  void set(std::set<std::uint32_t> ids, NumaNodes numa_nodes) {
    const MutexLock lock(mutex_);
    ids_ = std::move(ids);
    numa_nodes_ = std::move(numa_nodes);
  }
  void fill(NodeFacts& facts) const {
    const MutexLock lock(mutex_);
    facts.devices = ids_;
    facts.numa_nodes = numa_nodes_;
  }

 private:
  mutable Mutex mutex_;
  std::set<std::uint32_t> ids_ MUSTER_GUARDED_BY(mutex_);
  NumaNodes numa_nodes_ MUSTER_GUARDED_BY(mutex_);
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
  void watch_network();
  void probe_network_after(Duration after);
  void probe_network();
  void listen_to_network();
  void start_link();
  void start_log_push();

  // Handlers of local events.
  void run_changed(const RunKey& run);
  void turn();
  void last_scan(const RunKey& run);
  void gather(const RunKey& run);
  void upload_ordered(const v1::Orders& orders);
  void upload_while_running();
  void forget_uploads(const RunKey& gone);
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
  void check_outputs(const std::string& root);
  [[nodiscard]] std::string disk_text() const;

  async::Loop& loop_;
  async::Loop disk_;  // for synced writes of the identity
  AgentOptions options_;
  std::shared_ptr<StateDir> state_;  // used on disk_ after the first connection
  // its identity may be ahead of the disk
  ControllerLink controller_ MUSTER_GUARDED_BY(loop_);
  SingleFlight identity_later_ MUSTER_GUARDED_BY(loop_);  // identity_timer_ is armed
  SingleFlight disk_probe_ MUSTER_GUARDED_BY(loop_);
  std::optional<BootTime> disk_probed_at_ MUSTER_GUARDED_BY(loop_);
  // errno of the last write test on the state directory's disk; 0: the disk takes writes
  int disk_error_ MUSTER_GUARDED_BY(loop_) = 0;
  std::optional<v1::HostReading> host_reading_ MUSTER_GUARDED_BY(loop_);  // none: no check yet
  // Null: the controller has named no directory.
  std::unique_ptr<probe::OutputsWatch> outputs_ MUSTER_GUARDED_BY(loop_);

  std::unique_ptr<Watch> watch_;  // outlives the Host, which calls it
  std::unique_ptr<Host> host_;
  std::unique_ptr<LogPush> log_push_;
  std::unique_ptr<Link> link_;
  // shared with the threads of starts
  std::shared_ptr<FileStreams> files_;
  std::shared_ptr<SecretFetch> secrets_;
  std::unique_ptr<StoreReports> stores_;
  std::unique_ptr<Uploads> uploads_;

  std::unique_ptr<probe::Prober> prober_;
  probe::DeviceBook devices_ MUSTER_GUARDED_BY(loop_);
  // Shared with the threads of the prober and of starts.
  std::shared_ptr<probe::OwnProcesses> own_processes_ = std::make_shared<probe::OwnProcesses>();
  std::shared_ptr<DeviceIds> device_ids_ = std::make_shared<DeviceIds>();
  OncePerCause findings_logged_ MUSTER_GUARDED_BY(loop_);
  std::uint64_t probes_ MUSTER_GUARDED_BY(loop_) = 0;
  // when this incarnation last announced devices
  std::optional<BootTime> announced_at_ MUSTER_GUARDED_BY(loop_);
  // what is in the file, or will be in it soon
  std::string kept_ MUSTER_GUARDED_BY(loop_);
  // set on disk_'s thread
  std::shared_ptr<std::atomic<bool>> keeping_failed_ = std::make_shared<std::atomic<bool>>(false);

  std::optional<InterfaceNews> interface_news_ MUSTER_GUARDED_BY(loop_);
  std::unique_ptr<async::Readable> news_ready_ MUSTER_GUARDED_BY(loop_);
  // since the start
  std::optional<BootTime> network_reported_at_ MUSTER_GUARDED_BY(loop_);
  SingleFlight network_later_ MUSTER_GUARDED_BY(loop_);  // network_timer_ is armed

  Outbox outbox_ MUSTER_GUARDED_BY(loop_);
  std::set<RunKey> dirty_ MUSTER_GUARDED_BY(loop_);
  SingleFlight turn_later_ MUSTER_GUARDED_BY(loop_);   // turn() is posted
  SingleFlight flush_later_ MUSTER_GUARDED_BY(loop_);  // gather_timer_ is armed
  bool starting_up_ MUSTER_GUARDED_BY(loop_) = true;
  bool stopped_ MUSTER_GUARDED_BY(loop_) = false;

  Duration heartbeat_interval_ MUSTER_GUARDED_BY(loop_) = std::chrono::seconds(1);
  BootTime heartbeat_sent_at_ MUSTER_GUARDED_BY(loop_){};

  async::Timer heartbeat_timer_, gather_timer_, retry_timer_, identity_timer_, first_probe_timer_,
      network_timer_;

  Mutex log_hello_mutex_;
  // The same while it is down: who this agent is since it joined, for the threads of starts.
  std::optional<v1::LogHello> joined_ MUSTER_GUARDED_BY(log_hello_mutex_);
  // read by log push's thread; empty while the control stream is down
  std::optional<v1::LogHello> log_hello_ MUSTER_GUARDED_BY(log_hello_mutex_);
};

}  // namespace muster::agent
