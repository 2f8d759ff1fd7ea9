#include "controller/api/event_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/proto/proto_time.h"
#include "common/text/sizes.h"
#include "controller/api/bounded.h"
#include "controller/api/convert.h"
#include "controller/core/access/certificates.h"
#include "controller/core/model/event_fields.h"
#include "controller/core/model/text.h"
#include "controller/core/nodes/actor_text.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/secrets/secrets.h"
#include "controller/core/stores/stores.h"

namespace muster::controller {
namespace {

struct EventText {
  const char* type;
  std::string text;
  std::optional<RankNo> rank = {};
};

std::string with_reason(std::string text, const std::string& reason) {
  return reason.empty() ? text : text + ": " + bounded(reason);
}

std::string by_text(const std::string& user) { return user.empty() ? "" : " by " + bounded(user); }

std::string removal_text(const core::OutputsUploaded& e) {
  std::string text;
  if (!e.removed.empty())
    text = fmt::format("; {} older {} removed there", e.removed.size(),
                       e.removed.size() == 1 ? "one is" : "ones are");
  if (!e.not_removed.empty())
    text += "; an older one could not be removed: " + bounded(e.not_removed);
  return text;
}

std::string plural(std::size_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

struct Sayer {
  EventText operator()(const core::ControllerStarted& e) const {
    return {"controller-started",
            fmt::format("controller {} started, epoch {}", e.version, e.epoch.value)};
  }
  EventText operator()(const core::JournalEndLost& e) const {
    return {"journal-end-lost",
            fmt::format("the loss of the journal's end was accepted: generation {} of the journal "
                        "begins; jobs go on with attempt numbers that are higher by {}",
                        e.lineage.generation, e.attempts_skipped)};
  }
  EventText operator()(const core::NodeRegistered& e) const {
    return {"node-registered",
            fmt::format("node '{}' registered with {}", e.node.str(),
                        plural(static_cast<std::size_t>(e.inventory.devices_size()), "device"))};
  }
  EventText operator()(const core::NodeDeclaredDead& e) const {
    return {"node-declared-dead",
            with_reason(fmt::format("node '{}' was declared dead{}", e.node.str(), by_text(e.by)),
                        e.reason)};
  }
  EventText operator()(const core::NodeDrained& e) const {
    const std::string until = e.deadline ? ", until " + utc_text(*e.deadline) : "";
    return {"node-drained", with_reason(fmt::format("node '{}' is being drained by {}{}",
                                                    e.node.str(), core::actor_text(e.actor), until),
                                        e.why)};
  }
  EventText operator()(const core::NodeUndrained& e) const {
    return {"node-undrained", fmt::format("node '{}' takes new work again, says {}", e.node.str(),
                                          core::actor_text(e.actor))};
  }
  EventText operator()(const core::NodeLabelled& e) const {
    std::string labels;
    for (const auto& [key, value] : e.labels)
      labels += fmt::format("{}{}={}", labels.empty() ? "" : ", ", key, value);
    return {"node-labelled",
            bounded(fmt::format("labels of node '{}' by {}: {}", e.node.str(),
                                core::actor_text(e.actor), labels.empty() ? "none" : labels))};
  }
  EventText operator()(const core::NodeRemoved& e) const {
    return {"node-removed", fmt::format("node '{}' was removed from the cluster by {}",
                                        e.node.str(), core::actor_text(e.actor))};
  }
  EventText operator()(const core::NodeRenamed& e) const {
    return {"node-renamed", fmt::format("node '{}' was renamed to '{}' by {}", e.node.str(),
                                        e.new_name.str(), core::actor_text(e.actor))};
  }
  EventText operator()(const core::SecretSet& e) const {
    return {"secret-set",
            fmt::format("{} was set by {}", core::text_of(e.key), core::actor_text(e.actor))};
  }
  EventText operator()(const core::SecretRemoved& e) const {
    return {"secret-removed",
            fmt::format("{} was removed by {}", core::text_of(e.key), core::actor_text(e.actor))};
  }
  EventText operator()(const core::StoreSet& e) const {
    return {"store-set", fmt::format("{} ({}) was set by {}", core::store_text(e.key),
                                     e.profile.url(), core::actor_text(e.actor))};
  }
  EventText operator()(const core::StoreRemoved& e) const {
    return {"store-removed", fmt::format("{} was removed by {}", core::store_text(e.key),
                                         core::actor_text(e.actor))};
  }
  EventText operator()(const core::JobSubmitted& e) const {
    return {"job-submitted",
            fmt::format("job '{}' submitted: {}, engine {}", e.spec.name(),
                        plural(e.spec.resources().nodes(), "node"), e.spec.engine())};
  }
  EventText operator()(const core::CancelRequested& e) const {
    return {"cancel-requested", with_reason("cancel was asked for" + by_text(e.by), e.reason)};
  }
  EventText operator()(const core::PredecessorSucceeded& e) const {
    return {"predecessor-succeeded",
            fmt::format("job '{}', which it waited for, has succeeded", e.predecessor.str())};
  }
  EventText operator()(const core::AttemptPlaced& e) const {
    std::uint32_t ranks = 0;
    std::string nodes;
    for (const core::PlacedNode& node : e.nodes) {
      ranks += node.rank_count;
      // More names would not help.
      if (&node - e.nodes.data() < 4) nodes += (nodes.empty() ? "" : ", ") + node.node.str();
    }
    if (e.nodes.size() > 4) nodes += fmt::format(" and {} more", e.nodes.size() - 4);
    const bool given = e.resume && e.resume->from_start;
    const std::string from = e.resume
                                 ? fmt::format("{} from step {}{}", given ? "starts" : "resumes",
                                               e.resume->step, given ? " of start.from" : "")
                                 : "from the beginning";
    const std::string table = e.table_sha256.empty() ? "" : "; rank table " + e.table_sha256;
    return {"attempt-placed", fmt::format("attempt {} placed: {} on {}; {}{}", e.attempt.value,
                                          plural(ranks, "rank"), nodes, from, table)};
  }
  EventText operator()(const core::NodeStarted& e) const {
    return {"node-started",
            fmt::format("node '{}' started {}", e.node.str(), plural(e.pids.size(), "rank"))};
  }
  EventText operator()(const core::NodeStartFailed& e) const {
    return {"node-start-failed",
            with_reason(fmt::format("node '{}' could not start ({}){}", e.node.str(),
                                    core::to_string(e.why),
                                    e.step.empty() ? "" : fmt::format(" in step '{}'", e.step)),
                        e.text)};
  }
  EventText operator()(const core::RankExited& e) const {
    std::string text = core::exit_text(e);
    if (e.stop_requested && !e.killed_unasked) text += ", after a stop was asked for";
    if (e.success_unknown) text += ", and whether it had success could not be read";
    return {"rank-exited", with_reason(std::move(text), e.evidence), e.rank};
  }
  EventText operator()(const core::AuxiliaryExited& e) const {
    return {"auxiliary-exited", with_reason(core::exit_text(e), e.evidence)};
  }
  EventText operator()(const core::NodeSwept& e) const {
    return {"node-swept", with_reason(fmt::format("nothing of attempt {} is left on node '{}'",
                                                  e.attempt.value, e.node.str()),
                                      std::string(to_string(e.why)))};
  }
  EventText operator()(const core::FirstStep& e) const {
    return {"first-step",
            fmt::format("attempt {} made its first step: {}", e.attempt.value, e.step)};
  }
  EventText operator()(const core::NodeClockSkewed& e) const {
    const bool ahead = e.ahead > Duration::zero();
    return {"node-clock-skewed",
            fmt::format("the clock of node '{}' is {} {} the controller's: times in its logs are "
                        "that much off; let NTP or chrony set it",
                        e.node.str(), core::age_text(ahead ? e.ahead : -e.ahead),
                        ahead ? "ahead of" : "behind")};
  }
  EventText operator()(const core::OutputsUploaded& e) const {
    if (e.logs && !e.problem.empty())
      return {"logs-incomplete",
              fmt::format("node '{}' could not upload all logs of attempt {}: {}", e.node.str(),
                          e.attempt.value, e.problem)};
    if (e.logs)
      return {"logs-uploaded",
              fmt::format("the logs of attempt {} on node '{}' are uploaded: {} segments, {}",
                          e.attempt.value, e.node.str(), e.files, size_text(e.bytes))};
    if (e.step && !e.problem.empty())
      return {"checkpoint-not-sent",
              fmt::format("node '{}' could not upload the checkpoint of step {}: {}", e.node.str(),
                          *e.step, e.problem)};
    if (e.seal)
      return {"checkpoint-uploaded",
              fmt::format("the checkpoint of step {} is whole in the store of outputs.to{}",
                          *e.step, removal_text(e))};
    if (e.step)
      return {"checkpoint-sent",
              fmt::format("the files of the checkpoint of step {} on node '{}' are uploaded: {} "
                          "files, {}",
                          *e.step, e.node.str(), e.files, size_text(e.bytes))};
    if (!e.problem.empty())
      return {"outputs-incomplete",
              fmt::format("node '{}' could not upload all outputs: {}", e.node.str(), e.problem)};
    return {"outputs-uploaded",
            fmt::format("the outputs of node '{}' are uploaded: {} files, {}{}", e.node.str(),
                        e.files, size_text(e.bytes), removal_text(e))};
  }
  EventText operator()(const core::ScriptLaunched& e) const {
    std::string text = fmt::format(
        "the script would save in '{}'; muster has it save in a directory of attempt {}'s own",
        bounded(e.save), e.attempt.value);
    if (e.weights_alone)
      text +=
          ". What it saves has no optimizer (--no-save-optim): no attempt goes on from these "
          "checkpoints";
    return {"script-launched", std::move(text)};
  }
  EventText operator()(const core::CheckpointCompleted& e) const {
    return {"checkpoint-completed", fmt::format("checkpoint of step {} is complete: {}, {} bytes",
                                                e.step, plural(e.shards, "shard"), e.bytes)};
  }
  EventText operator()(const core::CheckpointQuarantined& e) const {
    return {"checkpoint-quarantined",
            with_reason(fmt::format("checkpoint of step {} (attempt {}) is quarantined", e.step,
                                    e.attempt.value),
                        e.reason)};
  }
  EventText operator()(const core::AttemptBroke& e) const {
    return {"attempt-broke",
            with_reason(fmt::format("attempt {} broke", e.attempt.value), e.cause)};
  }
  EventText operator()(const core::AttemptEnded& e) const {
    EventText result{"attempt-ended",
                     with_reason(fmt::format("attempt {} ended ({})", e.attempt.value,
                                             core::to_string(e.verdict.cls)),
                                 e.verdict.reason)};
    result.rank = e.verdict.rank;
    return result;
  }
  EventText operator()(const core::CaughtUp& e) const {
    return {"caught-up", fmt::format("step {} reached again: the incident is over", e.step)};
  }
  EventText operator()(const core::AttemptNoted& e) const {
    switch (e.note) {
      case core::Note::LossNotFinite:
        return {"loss-not-finite", fmt::format("the loss is not a number (NaN or infinite){}",
                                               e.step ? fmt::format(" at step {}", *e.step) : "")};
      case core::Note::UnknownFiles:
        return {"unknown-files", fmt::format("'{}' is in ${{save.dir}}, and nothing that "
                                             "checkpoint.layout knows: no attempt goes on from it",
                                             e.text)};
      case core::Note::OutputsIncomplete:
        return {
            "outputs-incomplete",
            fmt::format("the job has ended before node {} had uploaded its outputs: it has gone "
                        "silent; when it comes back, it uploads them",
                        e.text)};
      case core::Note::InputsChanged:
        return {"inputs-changed",
                fmt::format("inputs have other files than in earlier attempts: {}", e.text)};
    }
    return {"noted", e.text};
  }
  EventText operator()(const core::AttemptCompleted& e) const {
    return {"attempt-completed", fmt::format("attempt {} ran to its end", e.attempt.value)};
  }
  EventText operator()(const core::JobEnded& e) const {
    return {
        "job-ended",
        with_reason(fmt::format("job {}", core::to_string(e.outcome)),
                    e.verdict && e.outcome != core::Outcome::Succeeded ? e.verdict->reason : "")};
  }
  EventText operator()(const core::LogsCollected& e) const {
    return {"logs-collected", fmt::format("logs of attempt {} on node '{}' are all here",
                                          e.attempt.value, e.node.str())};
  }
  EventText operator()(const core::JobArchived&) const {
    return {"job-archived", "job moved to the archive"};
  }
  EventText operator()(const core::TombstoneDropped&) const {
    return {"tombstone-dropped", "the job's request id and name are free again"};
  }
  EventText operator()(const core::TokenCreated& e) const {
    if (!e.user.empty())
      return {"token-created",
              fmt::format("personal token '{}' was made for user '{}': {}, until {} (by {})",
                          e.token, e.user, plural(e.uses, "use"), utc_text(e.ends_at), e.actor)};
    return {"token-created",
            fmt::format("join token '{}' was made for node{} '{}': {}, until {}{} (by {})", e.token,
                        e.nodes.contains('*') ? "s" : "", e.nodes, plural(e.uses, "use"),
                        utc_text(e.ends_at), e.may_replace ? "; it may replace the node" : "",
                        e.actor)};
  }
  EventText operator()(const core::TokenRevoked& e) const {
    return {"token-revoked", fmt::format("token '{}' was revoked (by {})", e.token, e.actor)};
  }
  EventText operator()(const core::CertificateIssued& e) const {
    return {"certificate-issued",
            fmt::format("certificate {} of {} was issued, until {} (by {})", e.serial,
                        core::text_of(e.subject), utc_text(e.not_after), e.actor)};
  }
  EventText operator()(const core::CertificateRevoked& e) const {
    return {"certificate-revoked",
            with_reason(fmt::format("{} of {} was revoked (by {})",
                                    e.key.empty() ? "every certificate"
                                                  : "the key of certificate " + e.serial,
                                    core::text_of(e.subject), e.actor),
                        e.why)};
  }
  EventText operator()(const core::AuthorityChanged& e) const {
    const std::string ca = fmt::format("{}CA {}", e.imported ? "imported " : "", e.sha256);
    switch (e.step) {
      case core::AuthorityStep::Published:
        return {"ca-published",
                fmt::format("{} was published: nodes learn to trust it (by {})", ca, e.actor)};
      case core::AuthorityStep::Signs:
        return {"ca-signs", fmt::format("{} signs all certificates (by {})", ca, e.actor)};
      case core::AuthorityStep::Dropped:
        return {"ca-dropped", fmt::format("{} is trusted no more, nor are its certificates (by {})",
                                          ca, e.actor)};
    }
    return {};
  }
};

// The text of a first step, or of the best step reached again, if the attempt was given a
// checkpoint and did not read it. Empty: it did read it, or it is another event.
std::string went_back(const core::EventBody& body, const core::Ledger& after) {
  const bool first = std::holds_alternative<core::FirstStep>(body);
  const auto* caught_up = std::get_if<core::CaughtUp>(&body);
  if (!first && caught_up == nullptr) return {};
  const auto job = after.jobs.find(*job_of(body));
  const core::AttemptRecord* attempt =
      job == after.jobs.end() ? nullptr : job->second.attempt(attempt_of(body));
  if (attempt == nullptr) return {};
  std::string text = core::went_back_text(job->second, *attempt);
  if (first || text.empty()) return text;
  return fmt::format("step {} reached again, trained anew from step {} on", caught_up->step,
                     *attempt->first_step);
}

// What follows the text of a script's launch, if an earlier job would have saved in the same
// directory. The launch does not report what it loads, so the sentence says for which launches it
// is true: worker/shim/earlier.h answers no --load that names the directory of --save. Empty: there
// is no such job, the attempt was given a checkpoint, the spec says where to start, or it is
// another event.
std::string begins_without(const core::EventBody& body, const core::Ledger& after) {
  const auto* launched = std::get_if<core::ScriptLaunched>(&body);
  if (launched == nullptr) return {};
  const auto job = after.jobs.find(launched->job);
  const core::AttemptRecord* attempt =
      job == after.jobs.end() ? nullptr : job->second.attempt(launched->attempt);
  if (attempt == nullptr || attempt->resume || job->second.spec.has_start()) return {};
  const auto saved = std::ranges::find_if(attempt->saved, [&](const core::SavedBefore& one) {
    return one.named_dir == launched->save && !one.path.empty();
  });
  if (saved == attempt->saved.end()) return {};
  return fmt::format(
      ". Job {0} would have saved there, too: a launch with this directory in both --save and "
      "--load begins without that job's checkpoints; to go on from them write start: {{from: "
      "'job:{0}', as: resume}}",
      saved->job.str());
}

// Nullptr: the event is not about a certificate.
const core::Subject* subject_of(const core::EventBody& body) {
  if (const auto* issued = std::get_if<core::CertificateIssued>(&body)) return &issued->subject;
  if (const auto* revoked = std::get_if<core::CertificateRevoked>(&body)) return &revoked->subject;
  return nullptr;
}

}  // namespace

v1::Event describe(const journal::Row& row, const core::Ledger& after) {
  const core::EventBody& body = row.event.body;
  v1::Event event;
  event.set_index(row.index.value);
  *event.mutable_at() = to_proto(row.event.at);
  if (const JobId* id = job_of(body)) {
    event.set_job_id(id->str());
    if (const auto found = after.jobs.find(*id); found != after.jobs.end()) {
      event.set_job_name(found->second.spec.name());
      event.set_phase(to_v1(found->second.phase));
    }
  }
  if (const auto* archived = std::get_if<core::JobArchived>(&body))
    event.set_job_name(archived->name);
  event.set_attempt(attempt_of(body).value);
  if (const NodeName* node = node_of(body)) event.set_node(node->str());
  if (const auto* ended = std::get_if<core::AttemptEnded>(&body))
    event.set_node(ended->verdict.node.str());
  if (const core::Subject* subject = subject_of(body);
      subject != nullptr && subject->role == core::SubjectRole::Node)
    event.set_node(subject->name);
  EventText result = std::visit(Sayer{}, body);
  if (std::string back = went_back(body, after); !back.empty()) result.text = std::move(back);
  result.text += begins_without(body, after);
  event.set_type(result.type);
  event.set_text(std::move(result.text));
  if (result.rank) event.set_rank(result.rank->value);
  return event;
}

}  // namespace muster::controller
