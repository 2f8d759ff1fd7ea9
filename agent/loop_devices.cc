// The agent's devices: what is known of them before the first Hello, and what becomes of each look after it.
#include <algorithm>

#include "agent/loop.h"
#include "common/log/log.h"

namespace muster::agent {
namespace {

constexpr int kLooksApart = 3;  // between two Hellos for the devices' sake: a tool that cannot make up its mind costs the controller a record each time

}  // namespace

Result<void> Agent::start_devices() {
  probe::ProbeOptions options = *options_.probe;
  options.ours = [own = own_processes_](pid_t pid) { return own->holds(pid); };
  auto started = probe::Prober::start(std::move(options), options_.probe_interval, [this](probe::Probed look) {
    loop_.post("devices", [this, look = std::move(look)]() mutable {
      if (!stopped_) on_look(std::move(look));
    });
  });
  if (!started) return fail(std::move(started).error());
  prober_ = std::move(*started);
  first_look_timer_.arm(options_.first_look_bound, [this] {
    on_look({.findings = {"the tools have not answered yet: the devices are told as soon as they are known"}});
    looks_ = 0;  // that was none
  });
  return {};
}

void Agent::on_look(probe::Probed look) {
  first_look_timer_.cancel();
  const bool others = devices_.take(std::move(look));
  ++looks_;
  say_findings();
  if (!link_) {
    announce_devices();
    return start_link();
  }
  const bool soon = options_.clock->now().boot - announced_at_ < kLooksApart * options_.probe_interval;
  if (others && (!soon || !link_->up() || devices_.ids().empty())) {
    log::info("the devices are others than before; they are told with a new Hello");
    announce_devices();
    link_->say_hello_again();
  }
  pulse_soon();
}

void Agent::announce_devices() {
  devices_.announce();
  device_ids_->set(devices_.ids());
  announced_at_ = options_.clock->now().boot;
  log::info("devices", {{"count", devices_.ids().size()}});
}

// Once, until they are others.
void Agent::say_findings() {
  if (devices_.findings() == findings_said_) return;
  findings_said_ = devices_.findings();
  for (std::size_t at = 0; at < std::min(findings_said_.size(), probe::kFindingsMax); ++at) log::warn("looking at the devices: " + findings_said_[at]);
}

void Agent::note_own_processes() {
  if (!options_.probe) return;
  std::set<pid_t> pids;
  for (const auto& [run, seen] : host_->seen()) {
    if (seen.worker_pid != 0) pids.insert(static_cast<pid_t>(seen.worker_pid));
    for (const auto& [rank, pid] : seen.pids) pids.insert(static_cast<pid_t>(pid));
  }
  own_processes_->set(std::move(pids));
}

}  // namespace muster::agent
