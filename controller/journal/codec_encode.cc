#include "common/base/assert.h"
#include "common/proto/proto_lineage.h"
#include "controller/core/model/fact.h"
#include "controller/journal/codec.h"
#include "controller/journal/unknown.h"
#include "muster/journal/v1/record.pb.h"

namespace muster::journal {
namespace {

namespace pb = ::muster::journal::v1;

std::int64_t to_ns(WallTime at) { return at.time_since_epoch().count(); }

pb::FailureClass to_record(core::FailureClass cls) {
  switch (cls) {
    case core::FailureClass::UserError: return pb::FAILURE_CLASS_USER_ERROR;
    case core::FailureClass::Signal: return pb::FAILURE_CLASS_SIGNAL;
    case core::FailureClass::Oom: return pb::FAILURE_CLASS_OOM;
    case core::FailureClass::Node: return pb::FAILURE_CLASS_NODE;
    case core::FailureClass::Launch: return pb::FAILURE_CLASS_LAUNCH;
    case core::FailureClass::Worker: return pb::FAILURE_CLASS_WORKER;
    case core::FailureClass::Operator: return pb::FAILURE_CLASS_OPERATOR;
  }
  MUSTER_ASSERT(false, "a failure class that the journal cannot write");
}
pb::Outcome to_record(core::Outcome outcome) {
  switch (outcome) {
    case core::Outcome::Succeeded: return pb::OUTCOME_SUCCEEDED;
    case core::Outcome::Failed: return pb::OUTCOME_FAILED;
    case core::Outcome::Cancelled: return pb::OUTCOME_CANCELLED;
  }
  MUSTER_ASSERT(false, "an outcome that the journal cannot write");
}
pb::Note to_record(core::Note note) {
  switch (note) {
    case core::Note::LossNotFinite: return pb::NOTE_LOSS_NOT_FINITE;
    case core::Note::UnknownFiles: return pb::NOTE_UNKNOWN_FILES;
    case core::Note::InputsChanged: return pb::NOTE_INPUTS_CHANGED;
    case core::Note::OutputsIncomplete: return pb::NOTE_OUTPUTS_INCOMPLETE;
  }
  return pb::NOTE_UNSPECIFIED;
}
void put(pb::Subject& to, const core::Subject& from) {
  to.set_role(from.role == core::SubjectRole::Node ? pb::SUBJECT_ROLE_NODE : pb::SUBJECT_ROLE_USER);
  to.set_name(from.name);
}
pb::AuthorityStep to_record(core::AuthorityStep step) {
  switch (step) {
    case core::AuthorityStep::Published: return pb::AUTHORITY_STEP_PUBLISHED;
    case core::AuthorityStep::Signs: return pb::AUTHORITY_STEP_SIGNS;
    case core::AuthorityStep::Dropped: return pb::AUTHORITY_STEP_DROPPED;
  }
  return pb::AUTHORITY_STEP_UNSPECIFIED;
}
void put(pb::OwnedName& to, const core::OwnedName& from) {
  to.set_owner(from.owner);
  to.set_shared(from.shared);
  to.set_name(from.name);
}

void put(pb::Verdict& to, const core::Verdict& from) {
  to.set_failure_class(to_record(from.cls));
  to.set_node(from.node.value);
  if (from.rank) to.set_rank(from.rank->value);
  to.set_reason(from.reason);
  to.set_evidence(from.evidence);
  to.set_signature(from.signature);
}
void put(pb::PlacedNode& to, const core::PlacedNode& from) {
  to.set_node(from.node.value);
  to.set_boot_id(from.boot_id.value);
  to.set_instance(from.instance.value);
  to.set_address(from.address);
  to.mutable_devices()->Add(from.devices.begin(), from.devices.end());
  to.set_first_rank(from.first_rank.value);
  to.set_rank_count(from.rank_count);
  to.set_device_type(from.device_type);
  to.set_interface(from.interface);
  to.set_device_model(from.device_model);
  to.mutable_physical_ids()->Add(from.physical_ids.begin(), from.physical_ids.end());
  to.mutable_device_ips()->Add(from.device_ips.begin(), from.device_ips.end());
  to.mutable_super_device_ids()->Add(from.super_device_ids.begin(), from.super_device_ids.end());
  to.set_super_pod_id(from.super_pod_id);
  to.set_server_id(from.server_id);
  to.set_hccl_port(from.hccl_port);
}

void put(pb::SavedBefore& to, const core::SavedBefore& from) {
  to.set_named_dir(from.named_dir);
  to.set_job(from.job.value);
  to.set_path(from.path);
  to.set_step(from.step);
}
void put(pb::ResumePoint& to, const core::ResumePoint& from) {
  to.set_attempt(from.attempt.value);
  to.set_step(from.step);
  to.set_path(from.path);
  to.set_from_start(from.from_start);
  to.set_shards(from.shards);
}

struct Writer {
  pb::Record& record;

  // The first fields of every kind that belongs to an attempt, or to a node's part of an attempt.
  template <class To, class From>
  static void attempt(To& to, const From& from) {
    to.set_job(from.job.value);
    to.set_attempt(from.attempt.value);
  }
  template <class To, class From>
  static void part(To& to, const From& from) {
    attempt(to, from);
    to.set_node(from.node.value);
  }

  void operator()(const core::ControllerStarted& from) const {
    auto& to = *record.mutable_controller_started();
    to.set_epoch(from.epoch.value);
    to.set_cluster(from.cluster.value);
    to.set_version(from.version);
  }
  void operator()(const core::JournalEndLost& from) const {
    auto& to = *record.mutable_journal_end_lost();
    *to.mutable_lineage() = to_proto(from.lineage);
    to.set_attempts_skipped(from.attempts_skipped);
  }
  void operator()(const core::NodeRegistered& from) const {
    auto& to = *record.mutable_node_registered();
    to.set_node(from.node.value);
    to.set_instance(from.instance.value);
    to.set_boot_id(from.boot_id.value);
    *to.mutable_inventory() = from.inventory;
    to.set_version(from.version);
  }
  void operator()(const core::NodeDeclaredDead& from) const {
    auto& to = *record.mutable_node_declared_dead();
    to.set_node(from.node.value);
    to.set_reason(from.reason);
    to.set_by(from.by);
  }
  void operator()(const core::NodeDrained& from) const {
    auto& to = *record.mutable_node_drained();
    to.set_node(from.node.value);
    to.set_actor(from.actor);
    to.set_why(from.why);
    to.set_since_ns(to_ns(from.since));
    if (from.deadline) to.set_deadline_ns(to_ns(*from.deadline));
  }
  void operator()(const core::NodeUndrained& from) const {
    auto& to = *record.mutable_node_undrained();
    to.set_node(from.node.value);
    to.set_actor(from.actor);
  }
  void operator()(const core::NodeLabelled& from) const {
    auto& to = *record.mutable_node_labelled();
    to.set_node(from.node.value);
    to.set_actor(from.actor);
    to.mutable_labels()->insert(from.labels.begin(), from.labels.end());
  }
  void operator()(const core::NodeRemoved& from) const {
    auto& to = *record.mutable_node_removed();
    to.set_node(from.node.value);
    to.set_actor(from.actor);
  }
  void operator()(const core::NodeRenamed& from) const {
    auto& to = *record.mutable_node_renamed();
    to.set_node(from.node.value);
    to.set_new_name(from.new_name.value);
    to.set_actor(from.actor);
  }
  void operator()(const core::SecretSet& from) const {
    auto& to = *record.mutable_secret_set();
    put(*to.mutable_key(), from.key);
    to.set_item(from.item);
    to.set_replaced(from.replaced);
    to.set_actor(from.actor);
  }
  void operator()(const core::SecretRemoved& from) const {
    auto& to = *record.mutable_secret_removed();
    put(*to.mutable_key(), from.key);
    to.set_item(from.item);
    to.set_actor(from.actor);
  }
  void operator()(const core::StoreSet& from) const {
    auto& to = *record.mutable_store_set();
    put(*to.mutable_key(), from.key);
    *to.mutable_profile() = from.profile;
    to.set_actor(from.actor);
  }
  void operator()(const core::StoreRemoved& from) const {
    auto& to = *record.mutable_store_removed();
    put(*to.mutable_key(), from.key);
    to.set_actor(from.actor);
  }
  void operator()(const core::JobSubmitted& from) const {
    auto& to = *record.mutable_job_submitted();
    to.set_job(from.job.value);
    to.set_request_id(from.request_id.value);
    *to.mutable_spec() = from.spec;
    if (from.resolved.ByteSizeLong() > 0) *to.mutable_resolved() = from.resolved;
    to.set_spec_hash(from.spec_hash);
    to.set_owner(from.owner);
  }
  void operator()(const core::CancelRequested& from) const {
    auto& to = *record.mutable_cancel_requested();
    to.set_job(from.job.value);
    to.set_reason(from.reason);
    to.set_by(from.by);
  }
  void operator()(const core::PredecessorSucceeded& from) const {
    auto& to = *record.mutable_predecessor_succeeded();
    to.set_job(from.job.value);
    to.set_predecessor(from.predecessor.value);
    if (from.checkpoint) put(*to.mutable_checkpoint(), *from.checkpoint);
    if (!from.owned) return;
    to.set_attempt(from.owned->attempt.value);
    for (const core::ShardHolder& holder : from.owned->holders) {
      auto& one = *to.add_holders();
      one.set_node(holder.node.value);
      one.set_first_rank(holder.first_rank.value);
      one.set_ranks(holder.ranks);
    }
  }
  void operator()(const core::AttemptPlaced& from) const {
    auto& to = *record.mutable_attempt_placed();
    attempt(to, from);
    for (const core::PlacedNode& node : from.nodes) put(*to.add_nodes(), node);
    to.set_master_port(from.master_port);
    if (from.resume) put(*to.mutable_resume(), *from.resume);
    to.set_table_sha256(from.table_sha256);
    for (const core::SavedBefore& one : from.saved) put(*to.add_saved(), one);
    for (const core::PinnedSecret& one : from.secrets) {
      to.add_secrets()->set_name(one.name);
      to.mutable_secrets()->rbegin()->set_item(one.item);
    }
    for (const core::PinnedInput& one : from.inputs) {
      pb::PinnedInput& input = *to.add_inputs();
      input.set_input(one.input);
      *input.mutable_profile() = one.profile;
      input.set_secret(one.secret);
    }
    if (from.output) {
      *to.mutable_output()->mutable_profile() = from.output->profile;
      to.mutable_output()->set_secret(from.output->secret);
    }
    if (from.logs_output) {
      *to.mutable_logs_output()->mutable_profile() = from.logs_output->profile;
      to.mutable_logs_output()->set_secret(from.logs_output->secret);
    }
  }
  void operator()(const core::FactKind auto& from) const {
    auto& to = *record.mutable_agent_fact();
    to.set_node(from.node.value);
    to.set_instance(from.instance.value);
    to.set_controller_time_ns(to_ns(from.controller_time));
    *to.mutable_fact() = core::fact_of(from);
  }
  void operator()(const core::CheckpointCompleted& from) const {
    auto& to = *record.mutable_checkpoint_completed();
    attempt(to, from);
    to.set_step(from.step);
    to.set_path(from.path);
    to.set_bytes(from.bytes);
    to.set_shards(from.shards);
  }
  void operator()(const core::CheckpointQuarantined& from) const {
    auto& to = *record.mutable_checkpoint_quarantined();
    attempt(to, from);
    to.set_step(from.step);
    to.set_reason(from.reason);
  }
  void operator()(const core::AttemptBroke& from) const {
    auto& to = *record.mutable_attempt_broke();
    attempt(to, from);
    to.set_cause(from.cause);
    to.set_fault_time_ns(to_ns(from.fault_time));
    to.set_detected_at_ns(to_ns(from.detected_at));
    to.set_drained(from.drained.value);
    to.set_differing_input(from.differing_input);
  }
  void operator()(const core::AttemptEnded& from) const {
    auto& to = *record.mutable_attempt_ended();
    attempt(to, from);
    put(*to.mutable_verdict(), from.verdict);
    to.set_charged(from.charged);
    if (from.best_step >= 0) to.set_best_step(from.best_step);
    to.set_fence(from.fence);
    to.set_job_ends(from.job_ends);
  }
  void operator()(const core::CaughtUp& from) const {
    auto& to = *record.mutable_caught_up();
    attempt(to, from);
    to.set_step(from.step);
  }
  void operator()(const core::AttemptNoted& from) const {
    auto& to = *record.mutable_attempt_noted();
    attempt(to, from);
    to.set_note(to_record(from.note));
    to.set_node(from.node.str());
    if (from.step) to.set_step(*from.step);
    to.set_text(from.text);
  }
  void operator()(const core::AttemptCompleted& from) const {
    auto& to = *record.mutable_attempt_completed();
    attempt(to, from);
    if (from.best_step >= 0) to.set_best_step(from.best_step);
  }
  void operator()(const core::JobEnded& from) const {
    auto& to = *record.mutable_job_ended();
    to.set_job(from.job.value);
    to.set_outcome(to_record(from.outcome));
    if (from.verdict) put(*to.mutable_verdict(), *from.verdict);
  }
  void operator()(const core::LogsCollected& from) const {
    part(*record.mutable_logs_collected(), from);
  }
  void operator()(const core::JobArchived& from) const {
    auto& to = *record.mutable_job_archived();
    to.set_job(from.job.value);
    to.set_name(from.name);
    to.set_request_id(from.request_id.value);
    to.set_outcome(to_record(from.outcome));
    to.set_ended_at_ns(to_ns(from.ended_at));
    to.set_chain(from.chain.value);
    to.set_chain_name(from.chain_name);
    for (const core::SavedBefore& one : from.saved) put(*to.add_saved(), one);
    to.set_owner(from.owner);
  }
  void operator()(const core::TombstoneDropped& from) const {
    record.mutable_tombstone_dropped()->set_job(from.job.value);
  }
  void operator()(const core::TokenCreated& from) const {
    auto& to = *record.mutable_token_created();
    to.set_token(from.token);
    to.set_secret_sha256(from.secret_sha256);
    to.set_nodes(from.nodes);
    to.set_uses(from.uses);
    to.set_ends_at_ns(to_ns(from.ends_at));
    to.set_may_replace(from.may_replace);
    to.set_actor(from.actor);
    to.set_user(from.user);
  }
  void operator()(const core::TokenRevoked& from) const {
    auto& to = *record.mutable_token_revoked();
    to.set_token(from.token);
    to.set_actor(from.actor);
  }
  void operator()(const core::CertificateIssued& from) const {
    auto& to = *record.mutable_certificate_issued();
    to.set_serial(from.serial);
    put(*to.mutable_subject(), from.subject);
    to.set_key(from.key);
    to.set_not_before_ns(to_ns(from.not_before));
    to.set_not_after_ns(to_ns(from.not_after));
    to.set_token(from.token);
    to.set_actor(from.actor);
  }
  void operator()(const core::CertificateRevoked& from) const {
    auto& to = *record.mutable_certificate_revoked();
    put(*to.mutable_subject(), from.subject);
    to.set_key(from.key);
    to.set_serial(from.serial);
    to.set_before_ns(to_ns(from.before));
    to.set_why(from.why);
    to.set_actor(from.actor);
  }
  void operator()(const core::AuthorityChanged& from) const {
    auto& to = *record.mutable_authority_changed();
    to.set_step(to_record(from.step));
    to.set_sha256(from.sha256);
    to.set_imported(from.imported);
    to.set_actor(from.actor);
  }
};

}  // namespace

Record encode(const core::Event& event) {
  pb::Record record;
  record.set_at_ns(to_ns(event.at));
  std::visit(Writer{record}, event.body);
  // Unknown fields and enum values would make the record, and everything after it, unreadable. The
  // callers that receive messages discard or refuse them before they get here.
  leave_out_unknown(record);
  Record made{.format = kFormatProto,
              .type = static_cast<std::uint32_t>(record.what_case()),
              .payload = {}};
  const bool written = record.SerializeToString(&made.payload);
  MUSTER_ASSERT(written, "an event too large to be a record");
  return made;
}

}  // namespace muster::journal
