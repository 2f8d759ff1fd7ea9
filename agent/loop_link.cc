// The Agent's part of the control stream: what it sends to the controller, and what it accepts from
// it.
#include <cerrno>
#include <random>
#include <utility>

#include "agent/core/clock_skew.h"
#include "agent/link/own_credentials.h"
#include "agent/link/sendable.h"
#include "agent/loop.h"
#include "agent/probe/host_check.h"
#include "agent/probe/outputs_check.h"
#include "common/base/version.h"
#include "common/log/log.h"
#include "common/proto/proto_time.h"
#include "common/rpc/channel.h"

namespace muster::agent {
namespace {

// minimum time between two heartbeats out of turn
constexpr Duration kHeartbeatGap = std::chrono::milliseconds(20);
constexpr Duration kIdentityGap = std::chrono::seconds(1);
constexpr Duration kDiskProbeInterval = std::chrono::seconds(5);

v1::AttemptReading& reading_of(v1::Heartbeat& heartbeat, const RunKey& run) {
  for (v1::AttemptReading& reading : *heartbeat.mutable_readings()) {
    if (reading.job_id() == run.first.str() && reading.attempt() == run.second.value)
      return reading;
  }
  v1::AttemptReading& reading = *heartbeat.add_readings();
  reading.set_job_id(run.first.str());
  reading.set_attempt(run.second.value);
  return reading;
}

}  // namespace

void Agent::start_link() {
  loop_.assert_on();
  link_ = std::make_unique<Link>(
      loop_,
      LinkOptions{
          .endpoint = options_.endpoint, .seed = std::random_device{}(), .clock = options_.clock},
      LinkHandlers{
          .hello = [this] { return hello(); },
          .on_welcome = [this](const v1::Welcome& welcome,
                               BootTime sent) { return on_welcome(welcome, sent); },
          .on_orders = [this](v1::Orders orders) { on_orders(std::move(orders)); },
          .on_files_wanted = [this](v1::FilesWanted wanted) { files_->send(std::move(wanted)); },
          .on_store_check = [this](v1::StoreCheck check) { stores_->check(std::move(check)); },
          .on_authorities = options_.on_authorities,
          .on_unreached = options_.on_unreached,
          .on_fact_ack = [this](const v1::FactAck& ack) { on_fact_ack(ack); },
          .on_heartbeat_ack = [this](const v1::HeartbeatAck& ack) { on_heartbeat_ack(ack); },
          .on_down = [this] { on_down(); },
          .on_refused = [this](const Error& error,
                               bool other_cluster) { return on_refused(error, other_cluster); }});
  link_->start();
}

void Agent::start_log_push() {
  loop_.assert_on();
  log_push_ = LogPush::start(
      {},
      {.channel = [endpoint = options_.endpoint]() -> std::shared_ptr<grpc::Channel> {
         auto found = endpoint();
         return rpc::make_channel(found ? *found
                                        : rpc::Endpoint{.address = "unix:/nonexistent/muster"});
       },
       .hello =
           [this] {
             const MutexLock lock(log_hello_mutex_);
             return log_hello_;
           },
       .on_trouble = [](const std::string& text) { log::warn(text); },
       .on_complete = [](const RunKey&) {}},
      *watch_);
}

v1::Hello Agent::hello() const {
  loop_.assert_on();
  v1::Hello hello;
  hello.set_protocol_min(kProtocolMin);
  hello.set_protocol_max(kProtocolMax);
  hello.set_version(options_.version);
  controller_.fill(hello);
  hello.set_node(options_.host.node.str());
  hello.set_incarnation(options_.incarnation);
  hello.set_boot_id(options_.host.self.boot_id.str());
  *hello.mutable_uptime() = to_proto(options_.clock->now().boot.time_since_epoch());
  *hello.mutable_inventory() = options_.inventory;
  if (options_.probe) devices_.fill(*hello.mutable_inventory());
  for (const auto& [run, seen] : host_->seen()) {
    v1::PresentAttempt* present = hello.add_present();
    present->set_job_id(run.first.str());
    present->set_attempt(run.second.value);
    present->set_swept(seen.swept);
  }
  return hello;
}

Result<void> Agent::on_welcome(const v1::Welcome& welcome, BootTime hello_sent) {
  loop_.assert_on();
  auto taken = controller_.welcome(
      welcome, [this](const Identity& joined) { return state_->store(joined); });
  if (!taken) return fail(std::move(taken).error());
  const ClusterId& cluster = controller_.identity().cluster;
  host_->set_cluster(cluster);
  if (*taken) store_identity(true);
  {
    const MutexLock lock(log_hello_mutex_);
    v1::LogHello say;
    say.set_node(options_.host.node.str());
    say.set_instance(controller_.identity().instance.str());
    say.set_cluster_id(cluster.str());
    joined_ = say;
    log_hello_ = std::move(say);
  }
  if (const Duration interval = to_duration(welcome.heartbeat_interval());
      interval > Duration::zero())
    heartbeat_interval_ = interval;
  host_->renew_leases(hello_sent);
  outbox_.reconnected();
  check_outputs(welcome.outputs_root());
  // before the facts: a sweep among them must not arrive before the checkpoints of its run
  heartbeat();
  for (const auto& [run, seen] : host_->seen()) gather(run);
  flush();
  return {};
}

// Log push waits together with the control stream. It would otherwise try the same address equally
// often.
void Agent::on_down() {
  loop_.assert_on();
  heartbeat_timer_.cancel();
  const MutexLock lock(log_hello_mutex_);
  log_hello_.reset();
}

bool Agent::on_refused(const Error& error, bool other_cluster) {
  loop_.assert_on();
  if (!controller_.is_final(other_cluster) || !options_.on_permanent) return false;
  options_.on_permanent(error);
  return true;
}

void Agent::on_orders(v1::Orders orders) {
  loop_.assert_on();
  const ControllerLink::Taken taken = controller_.take(std::move(orders), host_->seen());
  if (!taken.ignored.empty()) log::error(taken.ignored);
  if (taken.store) store_identity(true);
  if (taken.obey) obey();
}

void Agent::identity_stored(const Identity& identity) {
  loop_.assert_on();
  if (!stopped_ && controller_.stored(identity, host_->seen())) obey();
}

void Agent::obey() {
  loop_.assert_on();
  for (const RunKey& run : controller_.take_unsupported()) {
    v1::Unsupported notice;
    notice.set_job_id(run.first.str());
    notice.set_attempt(run.second.value);
    notice.set_text("an order of a kind that agent " + options_.version + " does not know");
    log::error(
        "leaving an order alone: it is of a kind that this agent does not know; upgrade the agent",
        {{"job", notice.job_id()}, {"attempt", notice.attempt()}});
    link_->send_unsupported(std::move(notice));
  }
  reconcile_now();
}

void Agent::on_fact_ack(const v1::FactAck& ack) {
  loop_.assert_on();
  if (controller_.take(ack)) store_identity(false);
}

// A lineage or an epoch is stored at once, before its orders are obeyed. An acknowledged index is
// stored later. If a crash loses a part of it, the check against an old journal only becomes one
// second less exact.
void Agent::store_identity(bool now) {
  loop_.assert_on();
  if (now) {
    identity_later_.ended();
    identity_timer_.cancel();
    disk_.post("store identity", [this, state = state_, identity = controller_.identity()] {
      if (auto stored = state->store(identity); !stored)
        log::warn(stored.error().message + "; trying again with the next change");
      loop_.post("identity stored", [this, identity] { identity_stored(identity); });
    });
    return;
  }
  if (identity_later_.want_one())
    identity_timer_.arm(kIdentityGap, [this] { store_identity(true); });
}

void Agent::on_heartbeat_ack(const v1::HeartbeatAck& ack) {
  loop_.assert_on();
  const auto sent_at = controller_.take(ack);
  if (!sent_at) return;
  host_->renew_leases(*sent_at);
  if (const auto ahead = clock_skew(ack, *sent_at, options_.clock->now()))
    host_->note_clock_skew(*ahead);
}

void Agent::heartbeat() {
  loop_.assert_on();
  if (stopped_ || !link_ || !link_->up()) return;
  const Now now = options_.clock->now();
  v1::Heartbeat heartbeat;
  Readings seen = watch_->readings(controller_.mark_acked());
  heartbeat.set_number(controller_.next_heartbeat(now.boot, seen.mark, probes_));
  std::set<RunKey> watched;
  for (v1::AttemptReading& reading : seen.readings) {
    const RunKey key(JobId(reading.job_id()), AttemptNo(reading.attempt()));
    const RunSeen* run = host_->seen(key);
    reading.set_setting_up(run != nullptr && run->setting_up);
    reading.set_start_step(host_->start_news(key).step);
    *heartbeat.add_readings() = std::move(reading);
    watched.insert(key);
  }
  // a run whose worker has not been started is not watched yet, so its reading is added here
  for (const auto& [run, state] : host_->seen()) {
    if (watched.contains(run)) continue;
    StartNews news = host_->start_news(run);
    if (!state.setting_up && news.step.empty()) continue;
    v1::AttemptReading& reading = *heartbeat.add_readings();
    reading.set_job_id(run.first.str());
    reading.set_attempt(run.second.value);
    reading.set_setting_up(state.setting_up);
    reading.set_setup_text(std::move(news.text));
    reading.set_start_step(std::move(news.step));
  }
  if (probes_ > controller_.probe_acked()) {
    for (v1::DeviceReading& reading : devices_.readings())
      *heartbeat.add_devices() = std::move(reading);
  }
  for (const RunKey& run : trim_heartbeat(heartbeat, kHeartbeatBytesMost)) {
    if (!host_->first_trimmed(run)) continue;
    log::warn(
        "leaving out checkpoints: the shards in a save directory are too many for a message; none "
        "of its checkpoints comes to be known",
        {{"job", run.first.str()}, {"attempt", run.second.value}});
  }
  probe_disk();
  if (disk_error_ != 0) heartbeat.set_disk_trouble(disk_text());
  if (host_reading_) {
    *heartbeat.mutable_host() = *host_reading_;
    if (auto outputs = outputs_ ? outputs_->take() : std::nullopt)
      *heartbeat.mutable_host()->mutable_outputs() = *std::move(outputs);
  }
  *heartbeat.mutable_wall() = to_proto(now.wall);
  // a lease is renewed in its own disk space
  const bool full = disk_error_ == ENOSPC || disk_error_ == EDQUOT;
  for (const auto& [run, state] : host_->seen()) {
    if (const auto left = host_->lease_left(run, disk_error_ == 0 || full)) {
      *reading_of(heartbeat, run).mutable_lease_left() =
          to_proto(std::chrono::duration_cast<std::chrono::seconds>(*left));
    }
  }
  heartbeat_sent_at_ = now.boot;
  link_->send_heartbeat(std::move(heartbeat));
  heartbeat_timer_.arm(heartbeat_interval_, [this] { this->heartbeat(); });
}

// A write test may hang if the disk hangs, so it does not run on this loop. The machine is checked
// with it.
void Agent::probe_disk() {
  loop_.assert_on();
  const BootTime now = options_.clock->now().boot;
  if (disk_probed_at_ && now - *disk_probed_at_ < kDiskProbeInterval) return;
  if (!disk_probe_.want_one()) return;
  disk_probed_at_ = now;
  disk_.post(
      "probe the disk", [this, layout = options_.host.layout, endpoint = options_.endpoint,
                         check = probe::HostCheck{.state_dir = options_.host.layout.root(),
                                                  .path = options_.host.path,
                                                  .cgroup_trouble = options_.cgroup_trouble}] {
        v1::HostReading host = probe::check_host(check);
        if (const auto found = endpoint(); found && found->credentials)
          report_credentials(*found->credentials, host);
        loop_.post("probed the disk", [this, error = write_error(layout), host = std::move(host)] {
          loop_.assert_on();
          disk_probe_.ended();
          host_reading_ = host;
          if (stopped_ || std::exchange(disk_error_, error) == error) return;
          if (error == 0) {
            log::info("the disk of the state directory takes writes again");
          } else {
            log::warn("writing to the state directory " + disk_text() +
                      "; ends of ranks that need room there are not seen before it takes writes");
          }
          heartbeat_soon();
        });
      });
}

// The controller has forgotten what was reported on an earlier connection.
void Agent::check_outputs(const std::string& root) {
  loop_.assert_on();
  if (!root.starts_with('/') || root.contains('\0')) return;
  if (outputs_) {
    outputs_->watch(root);
    outputs_->send_again();
    return;
  }
  auto started = probe::OutputsWatch::start(
      root, {.check = [instance = controller_.identity().instance.str()](const std::string& dir) {
        return probe::check_outputs(dir, instance);
      }});
  if (started)
    outputs_ = *std::move(started);
  else
    log::warn(started.error().message + "; whether nodes share it stays unknown");
}

std::string Agent::disk_text() const {
  loop_.assert_on();
  return fail_errno("'" + options_.host.layout.root().string() + "'", disk_error_).error().message;
}

// A person waits for what was seen, so the heartbeat is sent out of turn. Many such events within a
// short time cause one heartbeat.
void Agent::heartbeat_soon() {
  loop_.assert_on();
  if (stopped_ || !link_ || !link_->up()) return;
  const Duration since = options_.clock->now().boot - heartbeat_sent_at_;
  heartbeat_timer_.arm(std::max(Duration::zero(), kHeartbeatGap - since), [this] { heartbeat(); });
}

}  // namespace muster::agent
