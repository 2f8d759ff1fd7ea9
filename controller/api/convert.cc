#include "controller/api/convert.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <span>

#include "common/engine/model/engine.h"
#include "common/proto/proto_time.h"
#include "controller/api/attempt_detail.h"
#include "controller/api/bounded.h"
#include "controller/core/nodes/actor_text.h"
#include "controller/core/nodes/drain.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/last_step.h"

namespace muster::controller {
namespace {

// Limits of a GetJob answer. With a spec of 1 MiB it stays below 4 MiB, which gRPC's clients take
// unless they are configured otherwise.
constexpr std::size_t kAttemptsBytes = 2 << 20;  // attempts and incidents
// The maximum part of these for the data that every attempt is shown with.
constexpr std::size_t kBriefBytes = 768 << 10;
constexpr std::size_t kAttemptsMost = 1'000;
constexpr std::size_t kCheckpointBytes = 384 << 10;
constexpr std::size_t kCheckpointFields = 64;  // of one, without its path
constexpr std::size_t kPathMost = 4'096;       // PATH_MAX
// Attempts of a node that the ledger does not know.
constexpr int kUnknownMost = 256;
constexpr std::size_t kRowNodesBytes = 512 << 10;  // nodes of a row in a list

v1::FailureClass class_to_v1(core::FailureClass cls) {
  switch (cls) {
    case core::FailureClass::UserError: return v1::FAILURE_CLASS_USER_ERROR;
    case core::FailureClass::Signal: return v1::FAILURE_CLASS_SIGNAL;
    case core::FailureClass::Oom: return v1::FAILURE_CLASS_OOM;
    case core::FailureClass::Node: return v1::FAILURE_CLASS_NODE;
    case core::FailureClass::Launch: return v1::FAILURE_CLASS_LAUNCH;
    case core::FailureClass::Worker: return v1::FAILURE_CLASS_WORKER;
    case core::FailureClass::Operator: return v1::FAILURE_CLASS_OPERATOR;
  }
  return v1::FAILURE_CLASS_UNSPECIFIED;
}

void mark(const std::optional<WallTime>& time, google::protobuf::Timestamp* (*field)(v1::Incident&),
          v1::Incident& incident) {
  if (time) *field(incident) = to_proto(*time);
}

// Without its nodes and its ranks' exits: attempt_detail.h.
v1::Attempt attempt_to_v1(const core::JobRecord& job, const core::AttemptRecord& attempt,
                          const std::string& out) {
  v1::Attempt shown;
  shown.set_number(attempt.number.value);
  if (attempt.resume) *shown.mutable_resume() = to_v1(*attempt.resume);
  *shown.mutable_placed_at() = to_proto(attempt.placed_at);
  if (attempt.running_at) *shown.mutable_running_at() = to_proto(*attempt.running_at);
  if (attempt.first_step_at) *shown.mutable_first_step_at() = to_proto(*attempt.first_step_at);
  if (attempt.ended_at) *shown.mutable_ended_at() = to_proto(*attempt.ended_at);
  if (attempt.verdict) *shown.mutable_verdict() = to_v1(*attempt.verdict);
  if (attempt.best_step >= 0) shown.set_best_step(attempt.best_step);
  shown.set_save_dir(bounded(engine::save_dir(job.spec, out, attempt.number.value), kPathMost));
  shown.set_table_sha256(attempt.table_sha256);
  if (attempt.first_step && (!attempt.resume || core::goes_on_from(job, attempt)))
    shown.set_first_step(*attempt.first_step);
  if (const auto note = attempt.notes.find(core::Note::UnknownFiles); note != attempt.notes.end())
    shown.set_unknown_file(bounded(note->second.text));
  return shown;
}

v1::Checkpoint checkpoint_to_v1(const core::CheckpointRecord& checkpoint) {
  v1::Checkpoint shown;
  shown.set_attempt(checkpoint.attempt.value);
  shown.set_step(checkpoint.step);
  shown.set_path(bounded(checkpoint.path, kPathMost));
  shown.set_bytes(checkpoint.bytes);
  shown.set_shards(checkpoint.shards);
  *shown.mutable_at() = to_proto(checkpoint.at);
  shown.set_quarantined(checkpoint.quarantined);
  shown.set_uploaded(checkpoint.uploaded);
  return shown;
}

// The incident of an attempt that broke because of a fault. Its later marks come from the attempts
// after it.
v1::Incident incident_of(const core::JobRecord& job, std::size_t broken) {
  const core::AttemptRecord& attempt = job.attempts[broken];
  v1::Incident incident;
  incident.set_attempt(attempt.number.value);
  if (attempt.verdict) *incident.mutable_verdict() = to_v1(*attempt.verdict);
  mark(attempt.fault_time, [](v1::Incident& i) { return i.mutable_fault(); }, incident);
  mark(attempt.detected_at, [](v1::Incident& i) { return i.mutable_detected(); }, incident);
  mark(attempt.decided_at(), [](v1::Incident& i) { return i.mutable_decided(); }, incident);
  mark(attempt.ended_at, [](v1::Incident& i) { return i.mutable_swept(); }, incident);
  if (broken + 1 < job.attempts.size()) {
    const core::AttemptRecord& next = job.attempts[broken + 1];
    mark(next.placed_at, [](v1::Incident& i) { return i.mutable_placed(); }, incident);
    mark(next.running_at, [](v1::Incident& i) { return i.mutable_started(); }, incident);
    mark(next.first_step_at, [](v1::Incident& i) { return i.mutable_first_step(); }, incident);
    if (next.resume) incident.set_resumed_from(next.resume->step);
    if (next.first_step && core::goes_on_from(job, next)) incident.set_began_at(*next.first_step);
  }
  for (std::size_t later = broken + 1; later < job.attempts.size(); ++later) {
    if (!job.attempts[later].caught_up_at) continue;
    mark(
        job.attempts[later].caught_up_at, [](v1::Incident& i) { return i.mutable_caught_up(); },
        incident);
    break;
  }
  return incident;
}

// Works from the newest to the oldest, and reverses the order at the end. First it adds what each
// attempt is shown with: its own fields, the names of its nodes, its first bad exits, and the
// incident. Then it adds nodes and exits in full, from the newest attempt on, until one does not
// fit.
void add_attempts(v1::Job& shown, const core::JobRecord& job, const std::string& out) {
  std::size_t used = 0;
  std::vector<v1::Attempt> attempts;
  std::vector<v1::Incident> incidents;
  bool room = true;  // for nodes and exits
  for (std::size_t i = job.attempts.size(); i-- > 0 && attempts.size() < kAttemptsMost;) {
    const core::AttemptRecord& attempt = job.attempts[i];
    v1::Attempt one = attempt_to_v1(job, attempt, out);
    std::optional<v1::Incident> incident;
    if (attempt.broke_at && !attempt.cancelled) incident = incident_of(job, i);
    const std::size_t least =
        one.ByteSizeLong() + (incident ? incident->ByteSizeLong() : 0) + kFieldBytes;
    if (used + least > kBriefBytes) break;
    used += least;
    const std::size_t brief = room ? brief_bytes(attempt) : 0;
    room = room && used + brief <= kBriefBytes;
    if (room) {
      add_brief(one, attempt);
      used += brief;
    }
    attempts.push_back(std::move(one));
    if (incident) incidents.push_back(std::move(*incident));
  }
  for (std::size_t newest = 0; newest < attempts.size(); ++newest) {
    const core::AttemptRecord& attempt = job.attempts[job.attempts.size() - 1 - newest];
    const std::size_t bytes = full_bytes(attempt);
    if (used + bytes > kAttemptsBytes) break;
    used += bytes;
    add_full(attempts[newest], attempt);
  }
  for (auto& attempt : attempts | std::views::reverse) *shown.add_attempts() = std::move(attempt);
  for (auto& incident : incidents | std::views::reverse)
    *shown.add_incidents() = std::move(incident);
}

// The ledger has the last step that ended ranks reported. It has no heartbeats, and the last of
// these may have come too late.
void add_last_step(v1::Job& shown, const core::AttemptRecord& attempt) {
  const std::int64_t last = core::last_step_reported(attempt);
  if (last < 0) return;
  const bool older = !shown.has_progress() || shown.progress().attempt() < attempt.number.value;
  if (!older && shown.progress().has_step() && shown.progress().step() >= last) return;
  v1::Progress& progress = *shown.mutable_progress();
  if (older) progress.Clear();
  progress.clear_loss();  // of an earlier step
  progress.clear_loss_not_finite();
  progress.set_attempt(attempt.number.value);
  progress.set_step(last);
  for (const core::NodePart& part : attempt.parts) {
    for (const auto& [rank, exit] : part.exits) {
      if (exit.step != last) continue;
      progress.set_reporting_rank(rank.value);
      if (exit.total) progress.set_total(*exit.total);
      return;
    }
  }
}

}  // namespace

v1::JobPhase to_v1(core::JobPhase phase) {
  switch (phase) {
    case core::JobPhase::Queued: return v1::JOB_PHASE_QUEUED;
    case core::JobPhase::Launching: return v1::JOB_PHASE_LAUNCHING;
    case core::JobPhase::Running: return v1::JOB_PHASE_RUNNING;
    case core::JobPhase::Draining: return v1::JOB_PHASE_DRAINING;
    case core::JobPhase::Completing: return v1::JOB_PHASE_COMPLETING;
    case core::JobPhase::Succeeded: return v1::JOB_PHASE_SUCCEEDED;
    case core::JobPhase::Failed: return v1::JOB_PHASE_FAILED;
    case core::JobPhase::Cancelled: return v1::JOB_PHASE_CANCELLED;
  }
  return v1::JOB_PHASE_UNSPECIFIED;
}

v1::Verdict to_v1(const core::Verdict& verdict) {
  v1::Verdict shown;
  shown.set_failure_class(class_to_v1(verdict.cls));
  shown.set_node(verdict.node.str());
  if (verdict.rank) shown.set_rank(verdict.rank->value);
  shown.set_reason(bounded(verdict.reason));
  shown.set_evidence(bounded(verdict.evidence));
  return shown;
}

v1::NodePlacement to_v1(const core::NodePart& part) {
  v1::NodePlacement shown;
  shown.set_node(part.placed.node.str());
  shown.set_boot_id(part.placed.boot_id.str());
  shown.set_instance(part.placed.instance.str());
  shown.set_address(part.placed.address);
  for (const std::uint32_t device : part.placed.devices) shown.add_devices(device);
  shown.set_first_rank(part.placed.first_rank.value);
  shown.set_rank_count(part.placed.rank_count);
  shown.set_started(part.started);
  shown.set_swept(part.swept);
  shown.set_interface(part.placed.interface);
  shown.mutable_physical_ids()->Add(part.placed.physical_ids.begin(),
                                    part.placed.physical_ids.end());
  for (const std::string& address : part.placed.device_ips) shown.add_device_ips(address);
  if (part.start_failed) shown.set_failed_start_step(part.start_failed->step);
  return shown;
}

v1::ResumePoint to_v1(const core::ResumePoint& resume) {
  v1::ResumePoint shown;
  shown.set_attempt(resume.attempt.value);
  shown.set_step(resume.step);
  shown.set_path(bounded(resume.path, kPathMost));
  shown.set_from_start(resume.from_start);
  return shown;
}

std::optional<v1::Progress> progress_of(const core::Presence& presence, const JobId& job) {
  auto newest = presence.attempts.upper_bound({job, AttemptNo(UINT32_MAX)});
  if (newest == presence.attempts.begin()) return std::nullopt;
  --newest;
  if (newest->first.first != job) return std::nullopt;
  const core::AttemptSeen& seen = newest->second;
  const auto reporting_rank =
      std::ranges::find_if(seen.ranks, [](const auto& entry) { return entry.second.step >= 0; });
  v1::Progress progress;
  progress.set_attempt(newest->first.second.value);
  if (reporting_rank != seen.ranks.end()) {
    progress.set_reporting_rank(reporting_rank->first.value);
    progress.set_step(reporting_rank->second.step);
    progress.set_total(reporting_rank->second.total);
    if (reporting_rank->second.has_loss) progress.set_loss(reporting_rank->second.loss);
    progress.set_loss_not_finite(reporting_rank->second.loss_not_finite);
  }
  progress.set_step_seconds(seen.step_seconds);
  if (seen.last_step_at != WallTime{}) *progress.mutable_at() = to_proto(seen.last_step_at);
  return progress;
}

v1::Job to_v1(const core::JobRecord& job, const core::Presence& presence,
              const std::string& cluster_out, Detail detail) {
  const std::string out = engine::out_dir(job.spec, job.resolved, job.id.str(), cluster_out);
  v1::Job shown;
  shown.set_id(job.id.str());
  if (detail == Detail::Full) {
    *shown.mutable_spec() = job.spec;
    *shown.mutable_resolved() = job.resolved;
  } else {
    shown.mutable_spec()->set_name(job.spec.name());
    shown.mutable_spec()->set_description(job.spec.description());
    *shown.mutable_spec()->mutable_labels() = job.spec.labels();
    shown.mutable_spec()->set_engine(job.spec.engine());
    if (job.spec.recovery().has_max_restarts())
      shown.mutable_spec()->mutable_recovery()->set_max_restarts(
          job.spec.recovery().max_restarts());
    for (const JobId& id : job.waits_for) shown.mutable_resolved()->add_after(id.str());
    if (job.spec.has_stage()) {
      v1::StageSpec& stage = *shown.mutable_spec()->mutable_stage();
      stage.set_chain_name(job.spec.stage().chain_name());
      stage.set_name(job.spec.stage().name());
      stage.set_number(job.spec.stage().number());
      stage.set_count(job.spec.stage().count());
    }
  }
  shown.set_phase(to_v1(job.phase));
  *shown.mutable_submitted_at() = to_proto(job.submitted_at);
  if (job.ended_at) *shown.mutable_ended_at() = to_proto(*job.ended_at);
  shown.set_attempt(job.attempts.empty() ? 0 : job.attempts.back().number.value);
  for (auto attempt = job.attempts.rbegin(); attempt != job.attempts.rend() && !shown.has_verdict();
       ++attempt) {
    if (attempt->verdict) *shown.mutable_verdict() = to_v1(*attempt->verdict);
  }
  if (detail == Detail::Full) {
    add_attempts(shown, job, out);
  } else if (!job.attempts.empty()) {
    *shown.add_attempts() = attempt_to_v1(job, job.attempts.back(), out);
    add_nodes(*shown.mutable_attempts(0), job.attempts.back(), kRowNodesBytes);
  }
  // Not from the number: after an accepted loss of the journal's end, it continues behind all
  // numbers that may have been used.
  shown.set_restarts(job.attempts.empty() ? 0
                                          : static_cast<std::uint32_t>(job.attempts.size() - 1));
  if (job.verdict) *shown.mutable_verdict() = to_v1(*job.verdict);
  // Incidents show what broke on the way.
  if (job.phase == core::JobPhase::Succeeded) shown.clear_verdict();
  if (auto progress = progress_of(presence, job.id))
    *shown.mutable_progress() = std::move(*progress);
  if (!job.attempts.empty()) add_last_step(shown, job.attempts.back());
  shown.set_output_dir(bounded(out, kPathMost));
  shown.set_last_index(job.last_index.value);
  shown.set_owner(job.owner);
  return shown;
}

void fill(v1::GetJobResponse& response, const core::JobRecord& job, const core::Presence& presence,
          const std::string& cluster_out, std::uint32_t before) {
  *response.mutable_job() = to_v1(job, presence, cluster_out, Detail::Full);
  const std::size_t total = job.checkpoints.size();
  const std::size_t end = before == 0 ? total : std::min<std::size_t>(before, total);
  std::size_t first = end;
  for (std::size_t bytes = 0;
       first > 0 && end - first < kCheckpointsMost && (bytes == 0 || bytes < kCheckpointBytes);
       --first)
    bytes += kCheckpointFields + std::min(job.checkpoints[first - 1].path.size(), kPathMost);
  for (const core::CheckpointRecord& checkpoint :
       std::span(job.checkpoints).subspan(first, end - first)) {
    *response.mutable_job()->add_checkpoints() = checkpoint_to_v1(checkpoint);
  }
  response.set_checkpoints_total(static_cast<std::uint32_t>(total));
  response.set_checkpoints_first(static_cast<std::uint32_t>(first));
}

namespace {

// The first end of the leases on the node that cannot be renewed.
std::optional<BootTime> first_lease_end(const NodeName& node, const core::Ledger& ledger,
                                        const core::Presence& presence) {
  std::optional<BootTime> first;
  const auto parts = ledger.indexes.node_parts.find(node);
  if (parts == ledger.indexes.node_parts.end()) return first;
  for (const core::AttemptKey& key : parts->second.unswept) {
    const auto attempt = presence.attempts.find(key);
    if (attempt == presence.attempts.end()) continue;
    if (const auto lease = attempt->second.leases_end.find(node);
        lease != attempt->second.leases_end.end())
      first = std::min(first.value_or(lease->second), lease->second);
  }
  return first;
}

}  // namespace

v1::Node to_v1(const core::NodeRecord& node, const core::Ledger& ledger,
               const core::Presence& presence, BootTime now, Duration silent_after) {
  v1::Node shown;
  shown.set_name(node.name.str());
  shown.set_instance(node.instance.str());
  shown.set_boot_id(node.boot_id.str());
  *shown.mutable_inventory() = node.inventory;
  shown.set_dead(node.dead);
  shown.set_connected(core::is_connected(presence, node.name));
  shown.set_silent(core::is_silent(presence, node.name, now, silent_after));
  shown.set_version(node.version);
  if (node.drain) {
    v1::Drain& drain = *shown.mutable_drain();
    *drain.mutable_since() = to_proto(node.drain->since);
    drain.set_actor(core::actor_text(node.drain->actor));
    drain.set_why(bounded(node.drain->why));
    if (node.drain->deadline) *drain.mutable_deadline() = to_proto(*node.drain->deadline);
    drain.set_drained(core::runs_nothing(ledger, node.name));
  }
  shown.mutable_labels()->insert(node.labels.begin(), node.labels.end());
  if (const auto seen = presence.nodes.find(node.name); seen != presence.nodes.end()) {
    if (seen->second.heard) *shown.mutable_last_heard() = to_proto(seen->second.last_heard_wall);
    for (const auto& [device, reading] : seen->second.devices) *shown.add_readings() = reading;
    shown.set_disk_trouble(seen->second.disk_trouble);
    if (seen->second.host) *shown.mutable_host() = *seen->second.host;
    if (seen->second.clock_ahead)
      *shown.mutable_clock_ahead() = to_proto(*seen->second.clock_ahead);
    if (const auto end = first_lease_end(node.name, ledger, presence))
      *shown.mutable_lease_ends() =
          to_proto(seen->second.last_heard_wall + (*end - seen->second.last_heard));
    for (const auto& [job, attempt] : seen->second.unknown_runs) {
      if (shown.unknown_attempts_size() == kUnknownMost) break;
      v1::UnknownAttempt& unknown = *shown.add_unknown_attempts();
      unknown.set_job_id(bounded(job.str(), 64));
      unknown.set_attempt(attempt.value);
    }
  }
  if (const auto holders = ledger.indexes.device_holders.find(node.name);
      holders != ledger.indexes.device_holders.end()) {
    for (const auto& [device, holder] : holders->second) {
      v1::DeviceUse& use = *shown.add_uses();
      use.set_device(device);
      use.set_job_id(holder.first.str());
      if (const auto job = ledger.jobs.find(holder.first); job != ledger.jobs.end())
        use.set_job_name(job->second.spec.name());
      use.set_attempt(holder.second.value);
    }
  }
  return shown;
}

namespace {

// Keeps the devices by type, the readings without texts and with at most one occupant, and the
// uses. Removes labels, interfaces, routes and findings.
void make_brief(v1::Node& node) {
  v1::Inventory& inventory = *node.mutable_inventory();
  v1::Inventory brief;
  brief.set_address(bounded(inventory.address()));
  brief.set_hostname(bounded(inventory.hostname()));
  brief.set_cpus(inventory.cpus());
  brief.set_memory_bytes(inventory.memory_bytes());
  for (const v1::Device& device : inventory.devices()) {
    v1::Device& one = *brief.add_devices();
    one.set_id(device.id());
    one.set_type(bounded(device.type(), 64));
  }
  if (brief.devices().empty() && !inventory.findings().empty())
    brief.add_findings(bounded(inventory.findings(0)));
  inventory = std::move(brief);
  for (v1::DeviceReading& reading : *node.mutable_readings()) {
    reading.clear_health_text();
    const int occupants = reading.occupants_size();
    if (occupants == 0) continue;
    const std::uint64_t pid = reading.occupants(0).pid();
    reading.clear_occupants();
    reading.add_occupants()->set_pid(pid);
  }
  node.clear_unknown_attempts();
  node.clear_labels();
  node.clear_host();
  node.clear_outputs();
  if (node.has_drain()) node.mutable_drain()->set_why(bounded(node.drain().why(), 128));
  node.set_disk_trouble(bounded(node.disk_trouble(), 128));
  node.set_version(bounded(node.version(), 128));
}

}  // namespace

NodeDetail less(NodeDetail detail) {
  switch (detail) {
    case NodeDetail::Full: return NodeDetail::Brief;
    case NodeDetail::Brief: return NodeDetail::WithoutReadings;
    case NodeDetail::WithoutReadings:
    case NodeDetail::Least: break;
  }
  return NodeDetail::Least;
}

std::size_t shrink(v1::Node& node, NodeDetail detail) {
  if (detail >= NodeDetail::Brief) make_brief(node);
  if (detail >= NodeDetail::WithoutReadings) {
    node.clear_readings();
    for (v1::DeviceUse& use : *node.mutable_uses()) use.clear_job_name();
  }
  if (detail >= NodeDetail::Least) {
    node.clear_uses();
    node.mutable_inventory()->clear_devices();
  }
  return node.ByteSizeLong() + kFieldBytes;
}

}  // namespace muster::controller
