#include "tests/scenarios/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controller/core/model/text.h"
#include "controller/core/secrets/secrets.h"
#include "controller/core/stores/stores.h"
#include "tests/support/access_text.h"

namespace muster::scenarios {
namespace {

std::string name_of(const core::Ledger& ledger, const JobId& job) {
  const auto found = ledger.jobs.find(job);
  return found == ledger.jobs.end() ? job.str() : found->second.spec.name();
}

std::string verdict_text(const core::Verdict& verdict) {
  std::string text = fmt::format("{}: {}", core::to_string(verdict.cls), verdict.reason);
  if (!verdict.evidence.empty()) text += fmt::format(" [{}]", verdict.evidence);
  return text;
}

class Describer : test::AccessText {
 public:
  using AccessText::operator();

  explicit Describer(const core::Ledger& ledger) : ledger_(ledger) {}

  std::string operator()(const core::ControllerStarted& event) const {
    return fmt::format("controller started, epoch {}", event.epoch.value);
  }
  std::string operator()(const core::JournalEndLost& event) const {
    return fmt::format("the journal's end was lost: generation {}, {} attempts skipped",
                       event.lineage.generation, event.attempts_skipped);
  }
  std::string operator()(const core::NodeRegistered& event) const {
    return fmt::format("node {} registered: {} devices, boot {}, instance {}", event.node.str(),
                       event.inventory.devices_size(), event.boot_id.str(), event.instance.str());
  }
  std::string operator()(const core::NodeDeclaredDead& event) const {
    return fmt::format("node {} declared dead: {}", event.node.str(), event.reason);
  }
  std::string operator()(const core::NodeDrained& event) const {
    return fmt::format("node {} drained by {}: {}{}", event.node.str(), event.actor, event.why,
                       event.deadline ? ", with a deadline" : "");
  }
  std::string operator()(const core::NodeUndrained& event) const {
    return fmt::format("node {} undrained by {}", event.node.str(), event.actor);
  }
  std::string operator()(const core::NodeLabelled& event) const {
    std::string text = fmt::format("node {} labelled by {}:", event.node.str(), event.actor);
    for (const auto& [key, value] : event.labels) text += fmt::format(" {}={}", key, value);
    return text;
  }
  std::string operator()(const core::NodeRemoved& event) const {
    return fmt::format("node {} removed by {}", event.node.str(), event.actor);
  }
  std::string operator()(const core::NodeRenamed& event) const {
    return fmt::format("node {} renamed to {} by {}", event.node.str(), event.new_name.str(),
                       event.actor);
  }
  std::string operator()(const core::SecretSet& event) const {
    return fmt::format("{} of '{}' set by {}", core::text_of(event.key), event.key.owner,
                       event.actor);
  }
  std::string operator()(const core::SecretRemoved& event) const {
    return fmt::format("{} of '{}' removed by {}", core::text_of(event.key), event.key.owner,
                       event.actor);
  }
  std::string operator()(const core::StoreSet& event) const {
    return fmt::format("{} for {} set by {}", core::store_text(event.key), event.profile.url(),
                       event.actor);
  }
  std::string operator()(const core::StoreRemoved& event) const {
    return fmt::format("{} removed by {}", core::store_text(event.key), event.actor);
  }
  std::string operator()(const core::JobSubmitted& event) const {
    return fmt::format("{} submitted as {}", event.spec.name(), event.job.str());
  }
  std::string operator()(const core::CancelRequested& event) const {
    return fmt::format("{} cancel requested", name_of(ledger_, event.job));
  }
  std::string operator()(const core::AttemptPlaced& event) const {
    std::string text = head(event) + "placed on";
    for (const core::PlacedNode& node : event.nodes) {
      text += fmt::format(" {}[{}]", node.node.str(), fmt::join(node.devices, ","));
      if (node.rank_count == 0) text += "(no rank)";
    }
    text += fmt::format(", port {}", event.master_port);
    if (event.resume && event.resume->from_start) {
      text += fmt::format(", starts with step {} ({})", event.resume->step, event.resume->path);
    } else if (event.resume) {
      text += fmt::format(", from step {} of attempt {}", event.resume->step,
                          event.resume->attempt.value);
    }
    return text;
  }
  std::string operator()(const core::NodeStarted& event) const {
    return head(event) + fmt::format("{} started", event.node.str());
  }
  std::string operator()(const core::NodeStartFailed& event) const {
    return head(event) +
           fmt::format(
               "{} failed to start ({}){}: {}", event.node.str(), core::to_string(event.why),
               event.step.empty() ? "" : fmt::format(" in step '{}'", event.step), event.text);
  }
  std::string operator()(const core::RankExited& event) const {
    return head(event) + core::exit_text(event);
  }
  std::string operator()(const core::AuxiliaryExited& event) const {
    return head(event) + core::exit_text(event);
  }
  std::string operator()(const core::PredecessorSucceeded& event) const {
    return fmt::format(
        "{} need not wait for {} any more{}", name_of(ledger_, event.job), event.predecessor.str(),
        event.checkpoint ? fmt::format(", and starts with its step {}", event.checkpoint->step)
                         : "");
  }
  std::string operator()(const core::NodeSwept& event) const {
    return head(event) + fmt::format("{} swept ({})", event.node.str(), to_string(event.why));
  }
  std::string operator()(const core::FirstStep& event) const {
    return head(event) + fmt::format("first step {}, seen on {}", event.step, event.node.str());
  }
  std::string operator()(const core::NodeClockSkewed& event) const {
    return head(event) + fmt::format("the clock of {} is {:+} s off", event.node.str(),
                                     event.ahead / std::chrono::seconds(1));
  }
  std::string operator()(const core::OutputsUploaded& event) const {
    const std::string what = event.logs    ? "logs"
                             : !event.step ? "outputs"
                             : event.seal  ? fmt::format("the mark of step {}", *event.step)
                                           : fmt::format("the checkpoint of step {}", *event.step);
    return head(event) + fmt::format("{} of {} uploaded: {} files{}{}", what, event.node.str(),
                                     event.files, event.problem.empty() ? "" : ", ", event.problem);
  }
  std::string operator()(const core::ScriptLaunched& event) const {
    return head(event) + fmt::format("its script would save in {}{}", event.save,
                                     event.weights_alone ? ", weights alone" : "");
  }
  std::string operator()(const core::CheckpointCompleted& event) const {
    return head(event) + fmt::format("checkpoint of step {} complete: {} shards, {} bytes",
                                     event.step, event.shards, event.bytes);
  }
  std::string operator()(const core::CheckpointQuarantined& event) const {
    return head(event) +
           fmt::format("checkpoint of step {} is quarantined: {}", event.step, event.reason);
  }
  std::string operator()(const core::AttemptBroke& event) const {
    return head(event) + "broke: " + event.cause;
  }
  std::string operator()(const core::AttemptEnded& event) const {
    return head(event) + fmt::format("ended by the fence ({}); verdict {}; {}, best step {}",
                                     event.fence, verdict_text(event.verdict),
                                     event.charged ? "charged" : "not charged", event.best_step);
  }
  std::string operator()(const core::CaughtUp& event) const {
    return head(event) + fmt::format("caught up at step {}", event.step);
  }
  std::string operator()(const core::AttemptNoted& event) const {
    if (event.note == core::Note::UnknownFiles)
      return head(event) + fmt::format("has saved what its layout does not know, '{}'", event.text);
    if (event.note == core::Note::OutputsIncomplete)
      return head(event) + fmt::format("outputs incomplete: not all of {}", event.text);
    return head(event) + fmt::format("loss not finite at step {}", event.step.value_or(-1));
  }
  std::string operator()(const core::AttemptCompleted& event) const {
    return head(event) + fmt::format("completed, best step {}", event.best_step);
  }
  std::string operator()(const core::JobEnded& event) const {
    std::string text =
        fmt::format("{} {}", name_of(ledger_, event.job), core::to_string(event.outcome));
    if (event.verdict) text += fmt::format(" ({})", verdict_text(*event.verdict));
    return text;
  }
  std::string operator()(const core::LogsCollected& event) const {
    return head(event) + fmt::format("logs of {} collected", event.node.str());
  }
  std::string operator()(const core::JobArchived& event) const {
    return fmt::format("{} archived", event.name);
  }
  std::string operator()(const core::TombstoneDropped& event) const {
    return fmt::format("tombstone of {} dropped", event.job.str());
  }

 private:
  template <class Event>
  std::string head(const Event& event) const {
    return describe(ledger_, core::AttemptKey{event.job, event.attempt}) + " ";
  }
  const core::Ledger& ledger_;
};

template <class Body>
JobId job_in(const Body& body) {
  if constexpr (requires { body.job; }) {
    return body.job;
  } else {
    return JobId();
  }
}

}  // namespace

std::string describe(const core::Ledger& ledger, const core::EventBody& body) {
  return std::visit(Describer(ledger), body);
}

std::string describe(const core::Ledger& ledger, const core::AttemptKey& key) {
  return fmt::format("{}.{}", name_of(ledger, key.first), key.second.value);
}

std::string describe(core::Want want) {
  switch (want) {
    case core::Want::Run: return "run";
    case core::Want::Stop: return "stop";
    case core::Want::Upload: return "upload";
    case core::Want::Forget: return "forget";
  }
  return "?";
}

std::string describe_job(const core::Ledger& ledger, const core::JobRecord& job) {
  std::string text = fmt::format("{} {}, best step {}, {} checkpoints, {} without progress\n",
                                 job.spec.name(), core::to_string(job.phase), job.best_step,
                                 job.checkpoints.size(), job.attempts_without_progress);
  for (const core::AttemptRecord& attempt : job.attempts) {
    text += fmt::format("  attempt {}: {} of {} swept, {} ranks exited, {}", attempt.number.value,
                        attempt.parts_swept, attempt.parts.size(), attempt.ranks_exited,
                        attempt.verdict ? verdict_text(*attempt.verdict)
                        : attempt.state == core::AttemptState::Completed ? "completed"
                                                                         : "no verdict");
    text += attempt.caught_up_at ? ", caught up\n" : "\n";
  }
  for (const core::CheckpointRecord& checkpoint : job.checkpoints)
    if (checkpoint.uploaded)
      text += fmt::format("  the checkpoint of step {} of attempt {} is uploaded\n",
                          checkpoint.step, checkpoint.attempt.value);
  for (const auto& [node, holders] : ledger.indexes.device_holders) {
    for (const auto& [device, key] : holders) {
      if (key.first == job.id)
        text +=
            fmt::format("  holds {}[{}] for attempt {}\n", node.str(), device, key.second.value);
    }
  }
  return text;
}

JobId job_of(const core::EventBody& body) {
  return std::visit([](const auto& one) { return job_in(one); }, body);
}

const core::JobPhase* phase_of(const core::Ledger& ledger, const JobId& job) {
  const auto found = ledger.jobs.find(job);
  return found == ledger.jobs.end() ? nullptr : &found->second.phase;
}

}  // namespace muster::scenarios
