// The device part of the Agent: what it knows of devices before the first Hello, and what it does
// with each probe after it.
#include <algorithm>

#include "agent/core/run_phase.h"
#include "agent/loop.h"
#include "agent/probe/kept_devices.h"
#include "common/log/log.h"
#include "common/rundir/records.h"

namespace muster::agent {
namespace {

// Minimum number of probe intervals between two Hellos because of devices. A tool that keeps
// changing its answer costs the controller one record each time.
constexpr int kProbesApart = 3;

}  // namespace

Result<void> Agent::start_devices() {
  loop_.assert_on();
  const bool restored = restore_devices();
  probe::ProbeOptions options = *options_.probe;
  options.own = own_processes_;
  auto started = probe::Prober::start(
      std::move(options), options_.probe_interval, [this](probe::Probed probed) {
        loop_.post("devices", [this, probed = std::move(probed)]() mutable {
          loop_.assert_on();
          if (!stopped_) on_probed(std::move(probed));
        });
      });
  if (!started) return fail(std::move(started).error());
  prober_ = std::move(*started);
  if (restored) {
    start_link();
    return {};
  }
  first_probe_timer_.arm(hello_bound(), [this] {
    on_probed({.findings = {"the tools have not answered yet: the devices are announced as soon as "
                            "they are known"}});
    loop_.assert_on();
    probes_ = 0;  // that was no probe
  });
  return {};
}

// Nothing is placed on these devices before the first probe. No reading is sent until then, and
// probes_devices says that readings follow.
bool Agent::restore_devices() {
  loop_.assert_on();
  auto kept = probe::load_kept(options_.host.layout.devices(), options_.host.self.instance,
                               options_.host.self.boot_id);
  if (!kept) {
    log::warn(kept.error().message + "; ignored: the first Hello waits for a probe of the devices");
    return false;
  }
  if (!*kept) return false;
  devices_.restore((*kept)->inventory, (*kept)->this_boot);
  device_ids_->set(devices_.ids(), devices_.numa_nodes());
  log::info(
      "devices, as they were announced last: until the tools have answered nothing new is placed "
      "on them",
      {{"count", devices_.ids().size()},
       {"reported", (*kept)->this_boot ? "on this boot" : "on another boot"}});
  return true;
}

// Ranks of an earlier incarnation must not end because a tool hangs. Half of their remaining grace
// is left for the connection to the controller and its answer.
Duration Agent::hello_bound() const {
  loop_.assert_on();
  Duration bound = options_.first_probe_bound;
  const BootTime now = options_.clock->now().boot;
  for (const auto& [run, seen] : host_->seen()) {
    if (!is_supervised(phase_of(seen, options_.host.self.boot_id))) continue;
    const auto lease = rundir::read_lease(rundir::RunLayout(host_->directory(run)));
    if (!lease || !*lease) continue;
    const auto end = rundir::lease_end(**lease, options_.host.self.boot_id);
    if (end && *end > now) bound = std::min(bound, (*end - now) / 2);
  }
  return bound;
}

void Agent::on_probed(probe::Probed probed) {
  loop_.assert_on();
  first_probe_timer_.cancel();
  const bool restored = devices_.restored();
  const bool others = devices_.take(std::move(probed));
  // the devices now belong to this boot
  if (restored && !devices_.restored() && !others) keep_devices();
  if (keeping_failed_->exchange(false)) store_devices();
  ++probes_;
  say_findings();
  if (!link_) {
    announce_devices();
    return start_link();
  }
  const bool soon = announced_at_ && options_.clock->now().boot - *announced_at_ <
                                         kProbesApart * options_.probe_interval;
  if (others && (restored || !soon || !link_->up() || devices_.ids().empty())) {
    log::info("the devices have changed; they are announced with a new Hello");
    announce_devices();
    link_->say_hello_again();
  }
  heartbeat_soon();
}

void Agent::announce_devices() {
  loop_.assert_on();
  devices_.announce();
  device_ids_->set(devices_.ids(), devices_.numa_nodes());
  announced_at_ = options_.clock->now().boot;
  log::info("devices", {{"count", devices_.ids().size()}});
  keep_devices();
}

void Agent::keep_devices() {
  loop_.assert_on();
  if (devices_.ids().empty()) return;
  v1::Inventory inventory;
  devices_.fill(inventory);
  std::string bytes = probe::encode_kept(options_.host.self.instance, options_.host.self.boot_id,
                                         options_.version, inventory);
  if (bytes == kept_) return;
  kept_ = std::move(bytes);
  store_devices();
}

void Agent::store_devices() {
  loop_.assert_on();
  disk_.post("keep devices", [file = options_.host.layout.devices(), bytes = kept_,
                              failed = keeping_failed_] {
    auto stored = probe::store_kept(file, bytes);
    *failed = !stored;
    if (!stored)
      log::warn(
          stored.error().message +
          "; trying again after the next probe, else the agent's next start waits for the tools");
  });
}

// Each list of findings is logged once, until it changes.
void Agent::say_findings() {
  loop_.assert_on();
  const std::vector<std::string>& findings = devices_.findings();
  std::string all;
  for (const std::string& finding : findings) all += finding + "\n";
  if (!findings_logged_.first(all)) return;
  for (std::size_t at = 0; at < std::min(findings.size(), probe::kFindingsMax); ++at)
    log::warn("probing the devices: " + findings[at]);
}

void Agent::note_own_processes() {
  loop_.assert_on();
  if (!options_.probe) return;
  std::set<pid_t> pids;
  std::set<std::uint32_t> devices;
  for (const auto& [run, seen] : host_->seen()) {
    if (seen.worker_pid != 0) pids.insert(static_cast<pid_t>(seen.worker_pid));
    for (const auto& [rank, pid] : seen.pids) pids.insert(static_cast<pid_t>(pid));
    if (seen.swept || !seen.launch_sound) continue;
    devices.insert(seen.devices.begin(), seen.devices.end());
  }
  own_processes_->set(std::move(pids), std::move(devices));
}

}  // namespace muster::agent
