#include "controller/journal/codec.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <utility>

#include "common/proto/proto_lineage.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/fact.h"
#include "controller/journal/unknown.h"
#include "muster/journal/v1/record.pb.h"

namespace muster::journal {
namespace {

namespace pb = ::muster::journal::v1;

// --- values --------------------------------------------------------------------------------------
WallTime from_ns(std::int64_t ns) { return WallTime(Duration(ns)); }

// Collects what cannot be understood, so that the code of each kind below reads as a list of its
// fields.
struct Trouble {
  std::string unknown;  // a newer version's value
  std::string damaged;
};
core::FailureClass from_record(pb::FailureClass cls, Trouble& trouble) {
  switch (cls) {
    case pb::FAILURE_CLASS_USER_ERROR: return core::FailureClass::UserError;
    case pb::FAILURE_CLASS_SIGNAL: return core::FailureClass::Signal;
    case pb::FAILURE_CLASS_OOM: return core::FailureClass::Oom;
    case pb::FAILURE_CLASS_NODE: return core::FailureClass::Node;
    case pb::FAILURE_CLASS_LAUNCH: return core::FailureClass::Launch;
    case pb::FAILURE_CLASS_WORKER: return core::FailureClass::Worker;
    case pb::FAILURE_CLASS_OPERATOR: return core::FailureClass::Operator;
    case pb::FAILURE_CLASS_UNSPECIFIED:
    case pb::FailureClass_INT_MIN_SENTINEL_DO_NOT_USE_:
    case pb::FailureClass_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  trouble.unknown = fmt::format("failure class {}", static_cast<int>(cls));
  return {};
}
core::Outcome from_record(pb::Outcome outcome, Trouble& trouble) {
  switch (outcome) {
    case pb::OUTCOME_SUCCEEDED: return core::Outcome::Succeeded;
    case pb::OUTCOME_FAILED: return core::Outcome::Failed;
    case pb::OUTCOME_CANCELLED: return core::Outcome::Cancelled;
    case pb::OUTCOME_UNSPECIFIED:
    case pb::Outcome_INT_MIN_SENTINEL_DO_NOT_USE_:
    case pb::Outcome_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  trouble.unknown = fmt::format("outcome {}", static_cast<int>(outcome));
  return {};
}
core::Note from_record(pb::Note note, Trouble& trouble) {
  switch (note) {
    case pb::NOTE_LOSS_NOT_FINITE: return core::Note::LossNotFinite;
    case pb::NOTE_UNKNOWN_FILES: return core::Note::UnknownFiles;
    case pb::NOTE_INPUTS_CHANGED: return core::Note::InputsChanged;
    case pb::NOTE_OUTPUTS_INCOMPLETE: return core::Note::OutputsIncomplete;
    case pb::NOTE_UNSPECIFIED:
    case pb::Note_INT_MIN_SENTINEL_DO_NOT_USE_:
    case pb::Note_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  trouble.unknown = fmt::format("note {}", static_cast<int>(note));
  return {};
}
core::AuthorityStep from_record(pb::AuthorityStep step, Trouble& trouble) {
  switch (step) {
    case pb::AUTHORITY_STEP_PUBLISHED: return core::AuthorityStep::Published;
    case pb::AUTHORITY_STEP_SIGNS: return core::AuthorityStep::Signs;
    case pb::AUTHORITY_STEP_DROPPED: return core::AuthorityStep::Dropped;
    case pb::AUTHORITY_STEP_UNSPECIFIED:
    case pb::AuthorityStep_INT_MIN_SENTINEL_DO_NOT_USE_:
    case pb::AuthorityStep_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  trouble.unknown = fmt::format("authority step {}", static_cast<int>(step));
  return {};
}
std::uint16_t port_from(std::uint32_t port, Trouble& trouble) {
  if (port > 65'535) trouble.damaged = fmt::format("port {}", port);
  return static_cast<std::uint16_t>(port);
}

Lineage new_lineage_from(const muster::v1::Lineage& from, Trouble& trouble) {
  Lineage lineage = to_lineage(from);
  if (lineage.generation == 0) trouble.damaged = "a new lineage of generation 0";
  if (!well_formed(lineage))
    trouble.damaged =
        fmt::format("a lineage of generation {} with a malformed id", lineage.generation);
  return lineage;
}
std::uint32_t skipped_from(std::uint32_t attempts, Trouble& trouble) {
  if (attempts > core::kAttemptReportedMax)
    trouble.damaged = fmt::format("{} skipped attempts", attempts);
  return attempts;
}

core::OwnedName take(const pb::OwnedName& from) {
  return {.owner = from.owner(), .shared = from.shared(), .name = from.name()};
}

core::Subject take(const pb::Subject& from, Trouble& trouble) {
  switch (from.role()) {
    case pb::SUBJECT_ROLE_NODE: return {.role = core::SubjectRole::Node, .name = from.name()};
    case pb::SUBJECT_ROLE_USER: return {.role = core::SubjectRole::User, .name = from.name()};
    case pb::SUBJECT_ROLE_UNSPECIFIED:
    case pb::SubjectRole_INT_MIN_SENTINEL_DO_NOT_USE_:
    case pb::SubjectRole_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  trouble.unknown = fmt::format("subject role {}", static_cast<int>(from.role()));
  return {};
}
core::Verdict take(const pb::Verdict& from, Trouble& trouble) {
  return {.cls = from_record(from.failure_class(), trouble),
          .node = NodeName(from.node()),
          .rank = from.has_rank() ? std::optional(RankNo(from.rank())) : std::nullopt,
          .reason = from.reason(),
          .evidence = from.evidence(),
          .signature = from.signature()};
}
core::PlacedNode take(const pb::PlacedNode& from, Trouble& trouble) {
  return {.node = NodeName(from.node()),
          .boot_id = BootId(from.boot_id()),
          .instance = InstanceId(from.instance()),
          .address = from.address(),
          .devices = {from.devices().begin(), from.devices().end()},
          .first_rank = RankNo(from.first_rank()),
          .rank_count = from.rank_count(),
          .device_type = from.device_type(),
          .interface = from.interface(),
          .device_model = from.device_model(),
          .physical_ids = {from.physical_ids().begin(), from.physical_ids().end()},
          .device_ips = {from.device_ips().begin(), from.device_ips().end()},
          .super_device_ids = {from.super_device_ids().begin(), from.super_device_ids().end()},
          .super_pod_id = from.super_pod_id(),
          .server_id = from.server_id(),
          .hccl_port = port_from(from.hccl_port(), trouble)};
}

core::SavedBefore take(const pb::SavedBefore& from) {
  return {.named_dir = from.named_dir(),
          .job = JobId(from.job()),
          .path = from.path(),
          .step = from.step()};
}
core::ResumePoint take(const pb::ResumePoint& from) {
  return {.attempt = AttemptNo(from.attempt()),
          .step = from.step(),
          .path = from.path(),
          .from_start = from.from_start(),
          .shards = from.shards()};
}

// --- records to events ---------------------------------------------------------------------------
template <class To, class From>
To take_attempt(const From& from) {
  To to;
  to.job = JobId(from.job());
  to.attempt = AttemptNo(from.attempt());
  return to;
}
template <class To, class From>
To take_part(const From& from) {
  To to = take_attempt<To>(from);
  to.node = NodeName(from.node());
  return to;
}

core::EventBody body_of(const pb::Record& record, Trouble& trouble) {
  switch (record.what_case()) {
    case pb::Record::kControllerStarted: {
      const auto& from = record.controller_started();
      return core::ControllerStarted{.epoch = Epoch(from.epoch()),
                                     .cluster = ClusterId(from.cluster()),
                                     .version = from.version()};
    }
    case pb::Record::kJournalEndLost: {
      const auto& from = record.journal_end_lost();
      return core::JournalEndLost{
          .lineage = new_lineage_from(from.lineage(), trouble),
          .attempts_skipped = skipped_from(from.attempts_skipped(), trouble)};
    }
    case pb::Record::kNodeRegistered: {
      const auto& from = record.node_registered();
      return core::NodeRegistered{.node = NodeName(from.node()),
                                  .instance = InstanceId(from.instance()),
                                  .boot_id = BootId(from.boot_id()),
                                  .inventory = from.inventory(),
                                  .version = from.version()};
    }
    case pb::Record::kNodeDeclaredDead: {
      const auto& from = record.node_declared_dead();
      return core::NodeDeclaredDead{
          .node = NodeName(from.node()), .reason = from.reason(), .by = from.by()};
    }
    case pb::Record::kNodeDrained: {
      const auto& from = record.node_drained();
      core::NodeDrained to{.node = NodeName(from.node()),
                           .actor = from.actor(),
                           .why = from.why(),
                           .since = from_ns(from.since_ns())};
      if (from.has_deadline_ns()) to.deadline = from_ns(from.deadline_ns());
      return to;
    }
    case pb::Record::kNodeUndrained: {
      const auto& from = record.node_undrained();
      return core::NodeUndrained{.node = NodeName(from.node()), .actor = from.actor()};
    }
    case pb::Record::kNodeLabelled: {
      const auto& from = record.node_labelled();
      return core::NodeLabelled{.node = NodeName(from.node()),
                                .actor = from.actor(),
                                .labels = {from.labels().begin(), from.labels().end()}};
    }
    case pb::Record::kNodeRemoved: {
      const auto& from = record.node_removed();
      return core::NodeRemoved{.node = NodeName(from.node()), .actor = from.actor()};
    }
    case pb::Record::kNodeRenamed: {
      const auto& from = record.node_renamed();
      return core::NodeRenamed{.node = NodeName(from.node()),
                               .new_name = NodeName(from.new_name()),
                               .actor = from.actor()};
    }
    case pb::Record::kSecretSet: {
      const auto& from = record.secret_set();
      return core::SecretSet{.key = take(from.key()),
                             .item = from.item(),
                             .replaced = from.replaced(),
                             .actor = from.actor()};
    }
    case pb::Record::kSecretRemoved: {
      const auto& from = record.secret_removed();
      return core::SecretRemoved{
          .key = take(from.key()), .item = from.item(), .actor = from.actor()};
    }
    case pb::Record::kStoreSet: {
      const auto& from = record.store_set();
      return core::StoreSet{
          .key = take(from.key()), .profile = from.profile(), .actor = from.actor()};
    }
    case pb::Record::kStoreRemoved: {
      const auto& from = record.store_removed();
      return core::StoreRemoved{.key = take(from.key()), .actor = from.actor()};
    }
    case pb::Record::kJobSubmitted: {
      const auto& from = record.job_submitted();
      return core::JobSubmitted{.job = JobId(from.job()),
                                .request_id = RequestId(from.request_id()),
                                .spec = from.spec(),
                                .resolved = from.resolved(),
                                .spec_hash = from.spec_hash(),
                                .owner = from.owner()};
    }
    case pb::Record::kCancelRequested: {
      const auto& from = record.cancel_requested();
      return core::CancelRequested{
          .job = JobId(from.job()), .reason = from.reason(), .by = from.by()};
    }
    case pb::Record::kPredecessorSucceeded: {
      const auto& from = record.predecessor_succeeded();
      core::PredecessorSucceeded to{.job = JobId(from.job()),
                                    .predecessor = JobId(from.predecessor())};
      if (from.has_checkpoint()) to.checkpoint = take(from.checkpoint());
      if (from.attempt() == 0) return to;
      core::OwnedShards& owned =
          to.owned.emplace(core::OwnedShards{.attempt = AttemptNo(from.attempt()), .holders = {}});
      for (const muster::v1::ShardHolder& one : from.holders())
        owned.holders.push_back({.node = NodeName(one.node()),
                                 .first_rank = RankNo(one.first_rank()),
                                 .ranks = one.ranks()});
      return to;
    }
    case pb::Record::kAttemptPlaced: {
      const auto& from = record.attempt_placed();
      auto to = take_attempt<core::AttemptPlaced>(from);
      for (const pb::PlacedNode& node : from.nodes()) to.nodes.push_back(take(node, trouble));
      to.master_port = port_from(from.master_port(), trouble);
      if (from.has_resume()) to.resume = take(from.resume());
      to.table_sha256 = from.table_sha256();
      for (const pb::SavedBefore& one : from.saved()) to.saved.push_back(take(one));
      for (const pb::PinnedSecret& one : from.secrets())
        to.secrets.push_back({.name = one.name(), .item = one.item()});
      for (const pb::PinnedInput& one : from.inputs())
        to.inputs.push_back(
            {.input = one.input(), .profile = one.profile(), .secret = one.secret()});
      if (from.has_output())
        to.output = {.profile = from.output().profile(), .secret = from.output().secret()};
      if (from.has_logs_output())
        to.logs_output = {.profile = from.logs_output().profile(),
                          .secret = from.logs_output().secret()};
      return to;
    }
    case pb::Record::kAgentFact: {
      const auto& from = record.agent_fact();
      core::FactEvent fact =
          core::event_of(from.fact(), {.node = NodeName(from.node()),
                                       .instance = InstanceId(from.instance()),
                                       .controller_time = from_ns(from.controller_time_ns())});
      trouble.unknown = std::move(fact.unknown);
      if (!fact.body) {
        trouble.damaged = "a fact of no kind";
        return {};
      }
      return std::visit([](auto& body) { return core::EventBody(std::move(body)); }, *fact.body);
    }
    case pb::Record::kCheckpointCompleted: {
      const auto& from = record.checkpoint_completed();
      auto to = take_attempt<core::CheckpointCompleted>(from);
      to.step = from.step();
      to.path = from.path();
      to.bytes = from.bytes();
      to.shards = from.shards();
      return to;
    }
    case pb::Record::kCheckpointQuarantined: {
      auto to = take_attempt<core::CheckpointQuarantined>(record.checkpoint_quarantined());
      to.step = record.checkpoint_quarantined().step();
      to.reason = record.checkpoint_quarantined().reason();
      return to;
    }
    case pb::Record::kAttemptBroke: {
      auto to = take_attempt<core::AttemptBroke>(record.attempt_broke());
      to.cause = record.attempt_broke().cause();
      to.fault_time = from_ns(record.attempt_broke().fault_time_ns());
      to.detected_at = from_ns(record.attempt_broke().detected_at_ns());
      to.drained = NodeName(record.attempt_broke().drained());
      to.differing_input = record.attempt_broke().differing_input();
      return to;
    }
    case pb::Record::kAttemptEnded: {
      const auto& from = record.attempt_ended();
      auto to = take_attempt<core::AttemptEnded>(from);
      to.verdict = take(from.verdict(), trouble);
      to.charged = from.charged();
      if (from.has_best_step()) to.best_step = from.best_step();
      to.fence = from.fence();
      to.job_ends = from.job_ends();
      return to;
    }
    case pb::Record::kCaughtUp: {
      auto to = take_attempt<core::CaughtUp>(record.caught_up());
      to.step = record.caught_up().step();
      return to;
    }
    case pb::Record::kAttemptNoted: {
      const auto& from = record.attempt_noted();
      auto to = take_part<core::AttemptNoted>(from);
      to.note = from_record(from.note(), trouble);
      if (from.has_step()) to.step = from.step();
      to.text = from.text();
      return to;
    }
    case pb::Record::kAttemptCompleted: {
      const auto& from = record.attempt_completed();
      auto to = take_attempt<core::AttemptCompleted>(from);
      if (from.has_best_step()) to.best_step = from.best_step();
      return to;
    }
    case pb::Record::kJobEnded: {
      const auto& from = record.job_ended();
      core::JobEnded to{.job = JobId(from.job()),
                        .outcome = from_record(from.outcome(), trouble),
                        .verdict = std::nullopt};
      if (from.has_verdict()) to.verdict = take(from.verdict(), trouble);
      return to;
    }
    case pb::Record::kLogsCollected: return take_part<core::LogsCollected>(record.logs_collected());
    case pb::Record::kJobArchived: {
      const auto& from = record.job_archived();
      core::JobArchived to{.job = JobId(from.job()),
                           .name = from.name(),
                           .request_id = RequestId(from.request_id()),
                           .outcome = from_record(from.outcome(), trouble),
                           .ended_at = from_ns(from.ended_at_ns()),
                           .chain = JobId(from.chain()),
                           .chain_name = from.chain_name(),
                           .owner = from.owner()};
      for (const pb::SavedBefore& one : from.saved()) to.saved.push_back(take(one));
      return to;
    }
    case pb::Record::kTombstoneDropped:
      return core::TombstoneDropped{.job = JobId(record.tombstone_dropped().job())};
    case pb::Record::kTokenCreated: {
      const auto& from = record.token_created();
      return core::TokenCreated{.token = from.token(),
                                .secret_sha256 = from.secret_sha256(),
                                .nodes = from.nodes(),
                                .uses = from.uses(),
                                .ends_at = from_ns(from.ends_at_ns()),
                                .may_replace = from.may_replace(),
                                .actor = from.actor(),
                                .user = from.user()};
    }
    case pb::Record::kTokenRevoked:
      return core::TokenRevoked{.token = record.token_revoked().token(),
                                .actor = record.token_revoked().actor()};
    case pb::Record::kCertificateIssued: {
      const auto& from = record.certificate_issued();
      return core::CertificateIssued{.serial = from.serial(),
                                     .subject = take(from.subject(), trouble),
                                     .key = from.key(),
                                     .not_before = from_ns(from.not_before_ns()),
                                     .not_after = from_ns(from.not_after_ns()),
                                     .token = from.token(),
                                     .actor = from.actor()};
    }
    case pb::Record::kCertificateRevoked: {
      const auto& from = record.certificate_revoked();
      return core::CertificateRevoked{.subject = take(from.subject(), trouble),
                                      .key = from.key(),
                                      .serial = from.serial(),
                                      .before = from_ns(from.before_ns()),
                                      .why = from.why(),
                                      .actor = from.actor()};
    }
    case pb::Record::kAuthorityChanged: {
      const auto& from = record.authority_changed();
      return core::AuthorityChanged{.step = from_record(from.step(), trouble),
                                    .sha256 = from.sha256(),
                                    .imported = from.imported(),
                                    .actor = from.actor()};
    }
    case pb::Record::WHAT_NOT_SET: break;
  }
  trouble.unknown = "no kind";
  return core::ControllerStarted{};
}

}  // namespace

Result<core::Event> decode(const Record& record) {
  static constexpr std::string_view kRemedy =
      "start a muster at least as new as the one that wrote it";
  if (record.format != kFormatProto) {
    return fail(ErrorCode::Unsupported, fmt::format("its format is {}, this version reads {}; {}",
                                                    record.format, kFormatProto, kRemedy));
  }
  if (kind_name(record.type).empty())
    return fail(ErrorCode::Unsupported,
                fmt::format("its kind {} is not known here; {}", record.type, kRemedy));
  pb::Record parsed;
  if (!parsed.ParseFromString(record.payload))
    return fail(ErrorCode::DataLoss,
                fmt::format("its payload ({} bytes) does not parse", record.payload.size()));
  if (const std::string unknown = first_unknown(parsed); !unknown.empty())
    return fail(ErrorCode::Unsupported,
                fmt::format("it has '{}', which is not known here; {}", unknown, kRemedy));
  if (static_cast<std::uint32_t>(parsed.what_case()) != record.type) {
    return fail(ErrorCode::DataLoss,
                fmt::format("its type says {}, its payload holds {}", record.type,
                            static_cast<int>(parsed.what_case())));
  }
  Trouble trouble;
  core::Event event{.at = from_ns(parsed.at_ns()), .body = body_of(parsed, trouble)};
  if (!trouble.damaged.empty())
    return fail(ErrorCode::DataLoss, fmt::format("it holds {}, which cannot be", trouble.damaged));
  if (!trouble.unknown.empty())
    return fail(ErrorCode::Unsupported,
                fmt::format("it holds {}, which is not known here; {}", trouble.unknown, kRemedy));
  return event;
}

std::string_view kind_name(std::uint32_t type) {
  const auto* field = pb::Record::descriptor()->FindFieldByNumber(static_cast<int>(type));
  return field != nullptr && field->containing_oneof() != nullptr ? std::string_view(field->name())
                                                                  : std::string_view();
}

}  // namespace muster::journal
