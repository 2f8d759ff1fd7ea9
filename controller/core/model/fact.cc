#include "controller/core/model/fact.h"

#include <fmt/format.h>

#include <utility>

#include "common/digest/hex.h"
#include "common/proto/proto_time.h"

namespace muster::core {
namespace {

// --- enums ---------------------------------------------------------------------------------------
// An unknown value counts as the node's fault, which charges the job nothing.
StartFailure from_message(v1::StartFailure from, std::string& unknown) {
  switch (from) {
    case v1::START_FAILURE_GONE: return StartFailure::Gone;
    case v1::START_FAILURE_LAUNCH: return StartFailure::Launch;
    case v1::START_FAILURE_PORT: return StartFailure::Port;
    case v1::START_FAILURE_DISK: return StartFailure::Disk;
    case v1::START_FAILURE_NODE: return StartFailure::Node;
    case v1::START_FAILURE_CHECKPOINT: return StartFailure::Checkpoint;
    case v1::START_FAILURE_INPUTS: return StartFailure::Inputs;
    case v1::START_FAILURE_INPUTS_CHANGED: return StartFailure::InputsChanged;
    case v1::START_FAILURE_UNSPECIFIED:
    case v1::StartFailure_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::StartFailure_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  unknown = fmt::format("start failure {}", static_cast<int>(from));
  return StartFailure::Node;
}
v1::StartFailure to_message(StartFailure why) {
  switch (why) {
    case StartFailure::Gone: return v1::START_FAILURE_GONE;
    case StartFailure::Launch: return v1::START_FAILURE_LAUNCH;
    case StartFailure::Port: return v1::START_FAILURE_PORT;
    case StartFailure::Disk: return v1::START_FAILURE_DISK;
    case StartFailure::Node: return v1::START_FAILURE_NODE;
    case StartFailure::Checkpoint: return v1::START_FAILURE_CHECKPOINT;
    case StartFailure::Inputs: return v1::START_FAILURE_INPUTS;
    case StartFailure::InputsChanged: return v1::START_FAILURE_INPUTS_CHANGED;
  }
  return v1::START_FAILURE_UNSPECIFIED;
}

// An unknown value counts as a plain end. That nothing is left on the node is true for every value,
// and no verdict follows from a plain end alone: the ends of the ranks decide.
SweptWhy from_message(v1::SweptWhy from, std::string& unknown) {
  switch (from) {
    case v1::SWEPT_WHY_ENDED: return SweptWhy::Ended;
    case v1::SWEPT_WHY_STOPPED: return SweptWhy::Stopped;
    case v1::SWEPT_WHY_ORPHANED: return SweptWhy::Orphaned;
    case v1::SWEPT_WHY_WORKER_DIED: return SweptWhy::WorkerDied;
    case v1::SWEPT_WHY_DISK_REFUSED_WRITES: return SweptWhy::DiskRefusedWrites;
    case v1::SWEPT_WHY_REBOOTED: return SweptWhy::Rebooted;
    case v1::SWEPT_WHY_NEVER_STARTED: return SweptWhy::NeverStarted;
    case v1::SWEPT_WHY_CLAIM_LOST: return SweptWhy::ClaimLost;
    case v1::SWEPT_WHY_UNSPECIFIED:
    case v1::SweptWhy_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::SweptWhy_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  unknown = fmt::format("reason of a sweep {}", static_cast<int>(from));
  return SweptWhy::Ended;
}
v1::SweptWhy to_message(SweptWhy why) {
  switch (why) {
    case SweptWhy::Ended: return v1::SWEPT_WHY_ENDED;
    case SweptWhy::Stopped: return v1::SWEPT_WHY_STOPPED;
    case SweptWhy::Orphaned: return v1::SWEPT_WHY_ORPHANED;
    case SweptWhy::WorkerDied: return v1::SWEPT_WHY_WORKER_DIED;
    case SweptWhy::DiskRefusedWrites: return v1::SWEPT_WHY_DISK_REFUSED_WRITES;
    case SweptWhy::Rebooted: return v1::SWEPT_WHY_REBOOTED;
    case SweptWhy::NeverStarted: return v1::SWEPT_WHY_NEVER_STARTED;
    case SweptWhy::ClaimLost: return v1::SWEPT_WHY_CLAIM_LOST;
  }
  return v1::SWEPT_WHY_UNSPECIFIED;
}

EvidenceKind from_message(v1::EvidenceKind from, std::string& unknown) {
  switch (from) {
    case v1::EVIDENCE_KIND_UNSPECIFIED: return EvidenceKind::Unknown;
    case v1::EVIDENCE_KIND_CAUSE: return EvidenceKind::Cause;
    case v1::EVIDENCE_KIND_CONSEQUENCE: return EvidenceKind::Consequence;
    case v1::EvidenceKind_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::EvidenceKind_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  unknown = fmt::format("kind of evidence {}", static_cast<int>(from));
  return EvidenceKind::Unknown;
}
v1::EvidenceKind to_message(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::Unknown: return v1::EVIDENCE_KIND_UNSPECIFIED;
    case EvidenceKind::Cause: return v1::EVIDENCE_KIND_CAUSE;
    case EvidenceKind::Consequence: return v1::EVIDENCE_KIND_CONSEQUENCE;
  }
  return v1::EVIDENCE_KIND_UNSPECIFIED;
}

// --- facts to events: the fields of each kind, in the order of the message -----------------------
void take(const v1::NodeStarted& from, NodeStarted& to, std::string& /*unknown*/) {
  to.pids.assign(from.pids().begin(), from.pids().end());
  to.worker_pid = from.worker_pid();
  to.resolved = from.resolved();
}
void take(const v1::NodeStartFailed& from, NodeStartFailed& to, std::string& unknown) {
  to.why = from_message(from.why(), unknown);
  to.text = from.text();
  to.step = from.step();
  to.torn.assign(from.checkpoint().torn().begin(), from.checkpoint().torn().end());
  to.there = from.checkpoint().there();
  to.needed = from.checkpoint().needed();
  to.names_sha256 = from.checkpoint().names_sha256();
}
void take(const v1::RankExited& from, RankExited& to, std::string& unknown) {
  to.rank = RankNo(from.rank());
  to.code = from.code();
  to.signal = from.signal();
  to.stop_requested = from.stop_requested();
  to.oom = from.oom();
  to.evidence = from.evidence();
  to.success_seen = from.success_seen();
  to.lost = from.lost();
  to.evidence_kind = from_message(from.evidence_kind(), unknown);
  if (from.has_step()) to.step = from.step();
  if (from.has_total()) to.total = from.total();
  if (from.has_training_rank()) to.training_rank = from.training_rank();
  to.killed_unasked = from.killed_unasked();
  to.success_unknown = from.success_unknown();
}
void take(const v1::NodeSwept& from, NodeSwept& to, std::string& unknown) {
  to.why = from_message(from.why(), unknown);
  to.logs_follow = from.logs_follow();
}
void take(const v1::FirstStep& from, FirstStep& to, std::string& /*unknown*/) {
  to.step = from.step();
}
void take(const v1::AuxiliaryExited& from, AuxiliaryExited& to, std::string& /*unknown*/) {
  to.name = from.name();
  to.code = from.code();
  to.signal = from.signal();
  to.evidence = from.evidence();
}
void take(const v1::ScriptLaunched& from, ScriptLaunched& to, std::string& /*unknown*/) {
  to.first_rank = from.first_rank();
  to.ranks = from.ranks();
  to.save = from.save();
  to.weights_alone = from.weights_alone();
}
void take(const v1::NodeClockSkewed& from, NodeClockSkewed& to, std::string& /*unknown*/) {
  to.ahead = to_duration(from.ahead());
}
void take(const v1::OutputsUploaded& from, OutputsUploaded& to, std::string& /*unknown*/) {
  to.files = from.files();
  to.bytes = from.bytes();
  to.problem = from.problem();
  if (from.has_step()) to.step = from.step();
  to.seal = from.seal();
  if (is_sha256_hex(from.sums_sha256())) to.sums_sha256 = from.sums_sha256();
  for (const v1::RemoteCheckpoint& one : from.removed())
    to.removed.push_back({.attempt = AttemptNo(one.attempt()), .step = one.step()});
  to.not_removed = from.not_removed();
  to.logs = from.logs();
}

// --- and back ------------------------------------------------------------------------------------
void put(v1::Fact& fact, const NodeStarted& from) {
  v1::NodeStarted& to = *fact.mutable_started();
  to.mutable_pids()->Add(from.pids.begin(), from.pids.end());
  to.set_worker_pid(from.worker_pid);
  if (from.resolved.ByteSizeLong() > 0) *to.mutable_resolved() = from.resolved;
}
void put(v1::Fact& fact, const NodeStartFailed& from) {
  v1::NodeStartFailed& to = *fact.mutable_start_failed();
  to.set_why(to_message(from.why));
  to.set_text(from.text);
  to.set_step(from.step);
  if (from.why != StartFailure::Checkpoint) return;
  v1::CheckpointReading& reading = *to.mutable_checkpoint();
  reading.mutable_torn()->Add(from.torn.begin(), from.torn.end());
  reading.set_there(from.there);
  reading.set_needed(from.needed);
  reading.set_names_sha256(from.names_sha256);
}
void put(v1::Fact& fact, const RankExited& from) {
  v1::RankExited& to = *fact.mutable_exited();
  to.set_rank(from.rank.value);
  to.set_code(from.code);
  to.set_signal(from.signal);
  to.set_stop_requested(from.stop_requested);
  to.set_oom(from.oom);
  to.set_evidence(from.evidence);
  to.set_success_seen(from.success_seen);
  to.set_lost(from.lost);
  to.set_evidence_kind(to_message(from.evidence_kind));
  if (from.step) to.set_step(*from.step);
  if (from.total) to.set_total(*from.total);
  if (from.training_rank) to.set_training_rank(*from.training_rank);
  to.set_killed_unasked(from.killed_unasked);
  to.set_success_unknown(from.success_unknown);
}
void put(v1::Fact& fact, const NodeSwept& from) {
  v1::NodeSwept& to = *fact.mutable_swept();
  to.set_why(to_message(from.why));
  to.set_logs_follow(from.logs_follow);
}
void put(v1::Fact& fact, const FirstStep& from) { fact.mutable_first_step()->set_step(from.step); }
void put(v1::Fact& fact, const AuxiliaryExited& from) {
  v1::AuxiliaryExited& to = *fact.mutable_auxiliary_exited();
  to.set_name(from.name);
  to.set_code(from.code);
  to.set_signal(from.signal);
  to.set_evidence(from.evidence);
}
void put(v1::Fact& fact, const ScriptLaunched& from) {
  v1::ScriptLaunched& to = *fact.mutable_script_launched();
  to.set_first_rank(from.first_rank);
  to.set_ranks(from.ranks);
  to.set_save(from.save);
  to.set_weights_alone(from.weights_alone);
}
void put(v1::Fact& fact, const NodeClockSkewed& from) {
  *fact.mutable_node_clock_skewed()->mutable_ahead() = to_proto(from.ahead);
}
void put(v1::Fact& fact, const OutputsUploaded& from) {
  v1::OutputsUploaded& to = *fact.mutable_outputs_uploaded();
  to.set_files(from.files);
  to.set_bytes(from.bytes);
  to.set_problem(from.problem);
  if (from.step) to.set_step(*from.step);
  to.set_seal(from.seal);
  to.set_sums_sha256(from.sums_sha256);
  for (const RemoteCheckpoint& one : from.removed) {
    v1::RemoteCheckpoint& removed = *to.add_removed();
    removed.set_attempt(one.attempt.value);
    removed.set_step(one.step);
  }
  to.set_not_removed(from.not_removed);
  to.set_logs(from.logs);
}

template <class Event, class From>
FactEvent made(const v1::Fact& fact, const FactSource& source, const From& from) {
  Event event;
  event.job = JobId(fact.job_id());
  event.attempt = AttemptNo(fact.attempt());
  event.node = source.node;
  event.instance = source.instance;
  event.node_time = to_wall(fact.at());
  event.controller_time = source.controller_time;
  FactEvent result;
  take(from, event, result.unknown);
  result.body = std::move(event);
  return result;
}

}  // namespace

FactEvent event_of(const v1::Fact& fact, const FactSource& source) {
  switch (fact.what_case()) {
    case v1::Fact::kStarted: return made<NodeStarted>(fact, source, fact.started());
    case v1::Fact::kStartFailed: return made<NodeStartFailed>(fact, source, fact.start_failed());
    case v1::Fact::kExited: return made<RankExited>(fact, source, fact.exited());
    case v1::Fact::kSwept: return made<NodeSwept>(fact, source, fact.swept());
    case v1::Fact::kFirstStep: return made<FirstStep>(fact, source, fact.first_step());
    case v1::Fact::kAuxiliaryExited:
      return made<AuxiliaryExited>(fact, source, fact.auxiliary_exited());
    case v1::Fact::kScriptLaunched:
      return made<ScriptLaunched>(fact, source, fact.script_launched());
    case v1::Fact::kNodeClockSkewed:
      return made<NodeClockSkewed>(fact, source, fact.node_clock_skewed());
    case v1::Fact::kOutputsUploaded:
      return made<OutputsUploaded>(fact, source, fact.outputs_uploaded());
    case v1::Fact::WHAT_NOT_SET: break;
  }
  return {};
}

v1::Fact fact_of(const FactBody& body) {
  return std::visit(
      [](const auto& event) {
        v1::Fact fact;
        fact.set_job_id(event.job.value);
        fact.set_attempt(event.attempt.value);
        *fact.mutable_at() = to_proto(event.node_time);
        put(fact, event);
        return fact;
      },
      body);
}

}  // namespace muster::core
