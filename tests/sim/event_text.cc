#include "tests/sim/event_text.h"

#include <fmt/format.h>

#include "controller/core/model/text.h"
#include "tests/support/access_text.h"

namespace muster::sim {
namespace {

struct Text : test::AccessText {
  using AccessText::operator();

  template <class Event>
  static std::string run(const Event& event) {
    return fmt::format("{}.{}", event.job.str(), event.attempt.value);
  }
  std::string operator()(const core::ControllerStarted& event) const {
    return fmt::format("controller started, epoch {}", event.epoch.value);
  }
  std::string operator()(const core::JournalEndLost& event) const {
    return fmt::format("journal's end lost: lineage {}:{}, {} attempts skipped",
                       event.lineage.generation, event.lineage.id, event.attempts_skipped);
  }
  std::string operator()(const core::NodeRegistered& event) const {
    return fmt::format("node registered: {} {} {}", event.node.str(), event.instance.str(),
                       event.boot_id.str());
  }
  std::string operator()(const core::NodeDeclaredDead& event) const {
    return fmt::format("node declared dead: {}", event.node.str());
  }
  std::string operator()(const core::NodeDrained& event) const {
    return fmt::format("node drained: {}{}", event.node.str(),
                       event.deadline ? ", with a deadline" : "");
  }
  std::string operator()(const core::NodeUndrained& event) const {
    return fmt::format("node undrained: {}", event.node.str());
  }
  std::string operator()(const core::NodeLabelled& event) const {
    return fmt::format("node labelled: {}: {}", event.node.str(), event.labels.size());
  }
  std::string operator()(const core::NodeRemoved& event) const {
    return fmt::format("node removed: {}", event.node.str());
  }
  std::string operator()(const core::NodeRenamed& event) const {
    return fmt::format("node renamed: {} to {}", event.node.str(), event.new_name.str());
  }
  std::string operator()(const core::SecretSet& event) const {
    return fmt::format("secret set: {}", event.key.name);
  }
  std::string operator()(const core::SecretRemoved& event) const {
    return fmt::format("secret removed: {}", event.key.name);
  }
  std::string operator()(const core::StoreSet& event) const {
    return fmt::format("store set: {}", event.key.name);
  }
  std::string operator()(const core::StoreRemoved& event) const {
    return fmt::format("store removed: {}", event.key.name);
  }
  std::string operator()(const core::JobSubmitted& event) const {
    return fmt::format("submitted: {} ({})", event.job.str(), event.spec.name());
  }
  std::string operator()(const core::CancelRequested& event) const {
    return fmt::format("cancel asked: {}", event.job.str());
  }
  std::string operator()(const core::AttemptPlaced& event) const {
    std::string text = fmt::format("placed: {}", run(event));
    for (const core::PlacedNode& placed : event.nodes) {
      text +=
          fmt::format(" {}[{}+{}]", placed.node.str(), placed.first_rank.value, placed.rank_count);
    }
    if (event.resume)
      text += fmt::format(" resumes at {} of {}attempt {}", event.resume->step,
                          event.resume->from_start ? "another job's " : "",
                          event.resume->attempt.value);
    return text;
  }
  std::string operator()(const core::NodeStarted& event) const {
    return fmt::format("started: {} on {}", run(event), event.node.str());
  }
  std::string operator()(const core::NodeStartFailed& event) const {
    return fmt::format("start failed: {} on {}{}: {}", run(event), event.node.str(),
                       event.step.empty() ? "" : " in step " + event.step, event.text);
  }
  std::string operator()(const core::RankExited& event) const {
    return fmt::format("exited: {} on {}: rank {} code {} signal {}{}{}", run(event),
                       event.node.str(), event.rank.value, event.code, event.signal,
                       event.lost ? " lost" : "", event.stop_requested ? " (stopped)" : "");
  }
  std::string operator()(const core::AuxiliaryExited& event) const {
    return fmt::format("auxiliary process exited: {} on {}: {} code {} signal {}", run(event),
                       event.node.str(), event.name, event.code, event.signal);
  }
  std::string operator()(const core::PredecessorSucceeded& event) const {
    return fmt::format(
        "predecessor succeeded: {} waited for {}{}", event.job.str(), event.predecessor.str(),
        event.checkpoint ? fmt::format(", and starts from its step {}", event.checkpoint->step)
                         : "");
  }
  std::string operator()(const core::NodeSwept& event) const {
    return fmt::format("swept: {} on {}: {}", run(event), event.node.str(), to_string(event.why));
  }
  std::string operator()(const core::FirstStep& event) const {
    return fmt::format("first step: {}: {}", run(event), event.step);
  }
  std::string operator()(const core::NodeClockSkewed& event) const {
    return fmt::format("clock skewed: {} on {}: {} s", run(event), event.node.str(),
                       event.ahead / std::chrono::seconds(1));
  }
  std::string operator()(const core::OutputsUploaded& event) const {
    return fmt::format("{} uploaded: {} on {}: step {}{}: {} files {}",
                       event.logs ? "logs" : "outputs", run(event), event.node.str(),
                       event.step.value_or(-1), event.seal ? " seal" : "", event.files,
                       event.problem);
  }
  std::string operator()(const core::ScriptLaunched& event) const {
    return fmt::format("script launched: {} would save in {}{}", run(event), event.save,
                       event.weights_alone ? ", weights alone" : "");
  }
  std::string operator()(const core::CheckpointCompleted& event) const {
    return fmt::format("checkpoint: {} step {}", run(event), event.step);
  }
  std::string operator()(const core::CheckpointQuarantined& event) const {
    return fmt::format("checkpoint quarantined: {} step {}: {}", run(event), event.step,
                       event.reason);
  }
  std::string operator()(const core::AttemptBroke& event) const {
    return fmt::format("broke: {}: {}", run(event), event.cause);
  }
  std::string operator()(const core::AttemptEnded& event) const {
    return fmt::format("ended: {}: {}; fence: {}{}", run(event), event.verdict.reason, event.fence,
                       event.job_ends ? "; the job ends" : "");
  }
  std::string operator()(const core::CaughtUp& event) const {
    return fmt::format("caught up: {}", run(event));
  }
  std::string operator()(const core::AttemptNoted& event) const {
    return fmt::format("noted: {}: {} {}", run(event),
                       event.note == core::Note::UnknownFiles        ? "unknown files"
                       : event.note == core::Note::OutputsIncomplete ? "outputs incomplete"
                       : event.note == core::Note::InputsChanged     ? "inputs changed"
                                                                     : "loss not finite",
                       event.text);
  }
  std::string operator()(const core::AttemptCompleted& event) const {
    return fmt::format("completed: {}", run(event));
  }
  std::string operator()(const core::JobEnded& event) const {
    return fmt::format("job ended: {} {}", event.job.str(), core::to_string(event.outcome));
  }
  std::string operator()(const core::LogsCollected& event) const {
    return fmt::format("logs collected: {} from {}", run(event), event.node.str());
  }
  std::string operator()(const core::JobArchived& event) const {
    return fmt::format("archived: {}", event.job.str());
  }
  std::string operator()(const core::TombstoneDropped& event) const {
    return fmt::format("tombstone dropped: {}", event.job.str());
  }
};

}  // namespace

std::string text_of(const core::EventBody& body) { return std::visit(Text{}, body); }

}  // namespace muster::sim
