#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <set>

#include "common/base/controls.h"
#include "common/base/utf8.h"
#include "common/proto/proto_time.h"
#include "controller/core/chains/saved_before.h"
#include "controller/core/decide.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/attempt_inputs.h"
#include "controller/core/model/fact.h"
#include "controller/core/model/text.h"
#include "controller/core/placement/node_fit.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/fence.h"
#include "controller/core/recovery/log_uploads.h"
#include "controller/core/recovery/uploads.h"

namespace muster::core {
namespace {

// Limits for what a node reports about checkpoints. An agent of this release respects them.
constexpr std::size_t kTornNamed = 64, kShardNameMax = 256, kFoundMax = 8, kPathMax = 4'096;

// What a node reports is stored for good. An agent of this release sends no more; of a longer text
// from another agent, the beginning is kept.
constexpr std::size_t kEvidenceBytes = 1'024, kSentenceBytes = 8 << 10, kResolvedBytes = 1 << 20;

// An agent of this release reports no smaller skew.
constexpr Duration kClockSkewMin = std::chrono::minutes(1);

std::string cut(const std::string& text, std::size_t most) {
  return text.size() <= most ? text
                             : text.substr(0, utf8_prefix(std::string_view(text).substr(0, most)));
}

constexpr Duration kBootMargin = std::chrono::seconds(5), kWallMargin = std::chrono::minutes(1);

// A greater age is not believed.
constexpr Duration kAgeMax = std::chrono::hours(365 * 24);

// When the event of the fact happened, by the controller's clock. The clocks of nodes differ by
// seconds. By these clocks, the node whose clock is behind would always have failed first.
WallTime by_our_clock(const v1::Fact& fact, WallTime arrived) {
  return arrived - std::clamp(to_duration(fact.age()), Duration::zero(), kAgeMax);
}

// Decides one fact of one part. A fact is new only once (natural key: job, attempt, node, rank or
// auxiliary process, kind). Known facts are acknowledged too.
class FactDecider {
 public:
  FactDecider(const Deciding& in, const ReportFact& input, const JobRecord& job,
              const AttemptRecord& attempt, const NodePart& part)
      : in_(in),
        input_(input),
        job_(job),
        attempt_(attempt),
        part_(part),
        at_(by_our_clock(input.fact, in.now.wall)) {}

  Decision run() {
    FactEvent reported = event_of(
        input_.fact, {.node = input_.node, .instance = input_.instance, .controller_time = at_});
    if (!reported.body) return nothing();
    return std::visit(
        [this](auto& event) { return may_report(event) ? decided(event) : nothing(); },
        *reported.body);
  }

 private:
  [[nodiscard]] bool same_boot() const {
    const auto known = in_.ledger.nodes.find(input_.node);
    return known != in_.ledger.nodes.end() && known->second.instance == input_.instance &&
           known->second.boot_id == part_.placed.boot_id;
  }
  [[nodiscard]] bool live() const {
    return &attempt_ == job_.current() && attempt_.state == AttemptState::Live;
  }
  [[nodiscard]] bool all_well() const {
    return std::ranges::count_if(part_.exits, [](const auto& exit) {
             return ended_well(exit.second);
           }) == part_.placed.rank_count;
  }
  // A state directory that the placement did not pin cannot have run the part. On the same boot,
  // its agent can report that nothing is left, because it has searched for the processes by their
  // process tag. It can also report why it will not start. An agent on another boot has seen
  // nothing of the part.
  [[nodiscard]] bool same_instance() const { return input_.instance == part_.placed.instance; }
  [[nodiscard]] bool may_report(const auto& /*event*/) const { return same_instance(); }
  [[nodiscard]] bool may_report(const NodeStartFailed& event) const {
    return same_instance() || (same_boot() && event.why == StartFailure::Gone);
  }
  [[nodiscard]] bool may_report(const NodeSwept& /*event*/) const {
    return same_instance() || same_boot();
  }
  void breaks(Decision& decision, std::string cause) const {
    if (!live()) return;
    decision.events.emplace_back(AttemptBroke{.job = job_.id,
                                              .attempt = attempt_.number,
                                              .cause = std::move(cause),
                                              .fault_time = at_,
                                              .detected_at = in_.now.wall});
  }

  // --- each kind: whether it is new, its bounds, and what follows from it ------------------------
  Decision decided(NodeStarted& event) const {
    if (part_.started) return nothing();
    if (event.pids.size() > part_.placed.rank_count) event.pids.resize(part_.placed.rank_count);
    bound_inputs(attempt_, event.resolved, event.resolved.ByteSizeLong() <= kResolvedBytes);
    const std::vector<std::string> changed = changed_inputs(job_, attempt_, event);
    const std::optional<DifferingInput> differs = differing_input(job_, attempt_, event);
    Decision decision = accept(std::move(event));
    if (!changed.empty() && live())
      decision.events.emplace_back(
          AttemptNoted{.job = job_.id,
                       .attempt = attempt_.number,
                       .note = Note::InputsChanged,
                       .node = input_.node,
                       .text = fmt::format("{}", fmt::join(changed, ", "))});
    if (differs && live())
      decision.events.emplace_back(AttemptBroke{.job = job_.id,
                                                .attempt = attempt_.number,
                                                .cause = differs->text,
                                                .fault_time = at_,
                                                .detected_at = in_.now.wall,
                                                .differing_input = differs->name});
    return decision;
  }

  Decision decided(NodeStartFailed& event) const {
    if (part_.start_failed) return nothing();
    event.text = cut(event.text, kSentenceBytes);
    event.step = without_controls(cut(event.step, kStartStepBytes));
    if (event.why == StartFailure::Checkpoint) {
      bound_reading(event);
    } else {
      event.torn.clear();
      event.there = event.needed = 0;
      event.names_sha256.clear();
    }
    Decision decision = accept(event);
    if (event.why == StartFailure::Checkpoint && scans_first(job_, attempt_))
      take_found(input_.fact.start_failed().checkpoint(), decision);
    // An agent that lost its state directory after the ranks had ended well reports `gone` as well.
    if (!all_well())
      breaks(decision,
             fmt::format("node '{}' could not start its part: {}", event.node.str(), event.text));
    return decision;
  }

  static void bound_reading(NodeStartFailed& event) {
    std::erase_if(event.torn, [](const std::string& name) { return name.size() > kShardNameMax; });
    if (event.torn.size() > kTornNamed) event.torn.resize(kTornNamed);
    if (event.names_sha256.size() > kShardNameMax) event.names_sha256.clear();
  }

  // Complete checkpoints whose records the journal has lost. The journal may lack their attempts
  // too.
  void take_found(const v1::CheckpointReading& from, Decision& decision) const {
    std::set<std::pair<std::uint32_t, std::int64_t>> taken;
    for (const v1::FoundStep& one : from.found()) {
      if (taken.size() == kFoundMax) break;
      const AttemptNo number(one.attempt());
      if (number.value == 0 || number >= attempt_.number || one.step() < 0 ||
          one.path().size() > kPathMax)
        continue;
      if (has_checkpoint(job_, number, one.step()) ||
          !taken.emplace(number.value, one.step()).second)
        continue;
      decision.events.emplace_back(CheckpointCompleted{.job = job_.id,
                                                       .attempt = number,
                                                       .step = one.step(),
                                                       .path = one.path(),
                                                       .bytes = one.bytes(),
                                                       .shards = one.shards()});
    }
  }

  Decision decided(RankExited& event) const {
    const bool here = event.rank >= part_.placed.first_rank &&
                      event.rank.value - part_.placed.first_rank.value < part_.placed.rank_count;
    if (!here || part_.exits.contains(event.rank)) return nothing();
    event.evidence = cut(event.evidence, kEvidenceBytes);
    event.killed_unasked = event.stop_requested && event.killed_unasked;
    event.success_unknown = event.success_unknown && !event.success_seen && ended_well(event);
    if (event.step && *event.step < 0) event.step.reset();
    if (event.total && *event.total <= 0) event.total.reset();
    if (job_.spec.launch().per() != v1::LAUNCH_PER_NODE) event.training_rank.reset();
    Decision decision = accept(event);
    if (!ended_well(event)) breaks(decision, exit_text(event));
    return decision;
  }

  // After every rank has ended well, such an end is only recorded: the work is done, whatever
  // happened to the helper process.
  Decision decided(AuxiliaryExited& event) const {
    const bool badly = event.code != 0 || event.signal != 0;
    if (!badly || event.name.empty() || event.name.size() > kAuxiliaryNameMax) return nothing();
    if (part_.auxiliaries.contains(event.name) || part_.auxiliaries.size() >= kAuxiliariesMax)
      return nothing();
    event.evidence = cut(event.evidence, kEvidenceBytes);
    Decision decision = accept(event);
    if (job_.phase != JobPhase::Completing) breaks(decision, exit_text(event));
    return decision;
  }

  Decision decided(NodeSwept& event) const {
    if (part_.swept) return nothing();
    Decision decision;
    // The part was refused before any rank ran, or the launch record was lost. The run directory
    // knows no ranks, so no log of theirs will ever be complete.
    const bool logs_gone = !event.logs_follow && part_.exits.size() < part_.placed.rank_count;
    if (logs_gone && !part_.logs_collected)
      decision.events.emplace_back(
          LogsCollected{.job = job_.id, .attempt = attempt_.number, .node = event.node});
    decision.events.emplace_back(event);
    if (auto lost = lost_outputs(part_, event)) decision.events.emplace_back(*std::move(lost));
    if (auto lost = lost_logs(part_, event)) decision.events.emplace_back(*std::move(lost));
    if (!all_well())
      breaks(decision, fmt::format("node '{}' was swept before its ranks had ended well ({})",
                                   event.node.str(), to_string(event.why)));
    return decision;
  }

  Decision decided(FirstStep& event) const {
    if (attempt_.first_step) return nothing();
    return accept(event);
  }

  Decision decided(NodeClockSkewed& event) const {
    if (part_.clock_ahead || std::chrono::abs(event.ahead) <= kClockSkewMin) return nothing();
    return accept(event);
  }

  Decision decided(OutputsUploaded& event) const {
    if (!(event.logs ? part_.uploads_logs : part_.uploads)) return nothing();
    if (event.logs) {
      event.step.reset();
      event.seal = false;
    }
    const bool is_new = !event.step  ? part_.swept
                        : event.seal ? *event.step > attempt_.sealed_step
                                     : *event.step > part_.sent_step;
    if (!is_new) return nothing();
    event.problem = cut(event.problem, kSentenceBytes);
    event.not_removed = cut(event.not_removed, kSentenceBytes);
    if (event.logs || (event.step && !event.seal)) event.removed.clear();
    return accept(std::move(event));
  }

  // The directory is a text of the script. It goes into an environment variable, one entry a line.
  Decision decided(ScriptLaunched& event) const {
    if (attempt_.script_launch || job_.spec.launch().per() != v1::LAUNCH_PER_NODE ||
        !can_be_passed_on(event.save))
      return nothing();
    return accept(std::move(event));
  }

  const Deciding& in_;
  const ReportFact& input_;
  const JobRecord& job_;
  const AttemptRecord& attempt_;
  const NodePart& part_;
  WallTime at_;  // when it happened, by the controller's clock
};

// The latest moment at which the old boot is known to have been alive, for a restarted controller,
// which has not heard that boot. It is the node's registration, or the placement of a part that
// started and is not swept. It is by the wall clock, which may have been set since.
WallTime known_word(const Ledger& ledger, const NodeRecord& node) {
  WallTime word = node.registered_at;
  const auto parts = ledger.indexes.node_parts.find(node.name);
  if (parts == ledger.indexes.node_parts.end()) return word;
  for (const AttemptKey& key : parts->second.unswept) {
    const AttemptRecord& attempt = *ledger.jobs.at(key.first).attempt(key.second);
    const NodePart& part = *attempt.part(node.name);
    if (part.started && part.placed.instance == node.instance &&
        part.placed.boot_id == node.boot_id)
      word = std::max(word, attempt.placed_at);
  }
  return word;
}

// A machine that was restarted under its ranks began its new boot after the last message of the old
// boot. If the boot began before that, it is the boot of another machine, which has a copy of the
// state directory. Both moments are by the controller's own boot clock. The margins are for the
// agent's clock, which may be wrong by a thousandth, and for the delay of a message.
bool began_before_last_word(const Deciding& in, const RegisterNode& input) {
  const Duration latest = input.uptime - input.uptime / 1'000;
  const auto of_another_boot = [&](const auto& node) {
    return node.instance == input.instance && !node.boot_id.empty() &&
           node.boot_id != input.boot_id;
  };
  const auto found = in.presence.nodes.find(input.node);
  if (found != in.presence.nodes.end() && found->second.heard)
    return of_another_boot(found->second) &&
           in.now.boot - latest + kBootMargin < found->second.last_heard;
  const auto known = in.ledger.nodes.find(input.node);
  return known != in.ledger.nodes.end() && of_another_boot(known->second) &&
         in.now.wall - latest + kWallMargin < known_word(in.ledger, known->second);
}

// A part whose ranks may still run on another machine than the one that registers this name now.
// Only an agent from where they run can report what happened to them. It has the same state
// directory (on another boot: the machine was restarted under them), or the same boot (it finds
// them by their process tag).
std::optional<AttemptKey> runs_elsewhere(const Deciding& in, const RegisterNode& input) {
  const bool copied = began_before_last_word(in, input);
  const auto same_machine = [&](const InstanceId& instance, const BootId& boot_id) {
    return (instance == input.instance && !copied) ||
           (!boot_id.empty() && boot_id == input.boot_id);
  };
  const auto known = in.ledger.nodes.find(input.node);
  if (known != in.ledger.nodes.end() && same_machine(known->second.instance, known->second.boot_id))
    return std::nullopt;
  const auto parts = in.ledger.indexes.node_parts.find(input.node);
  if (parts == in.ledger.indexes.node_parts.end()) return std::nullopt;
  for (const AttemptKey& key : parts->second.unswept) {
    const JobRecord& job = in.ledger.jobs.at(key.first);
    const NodePart& part = *job.attempt(key.second)->part(input.node);
    if (same_machine(part.placed.instance, part.placed.boot_id)) continue;
    if (!can_run_nothing(check_part(in.ledger, in.presence, job, part, in.now, in.limits).liveness))
      return key;
  }
  return std::nullopt;
}

}  // namespace

Decision decide_one(const Deciding& in, const RegisterNode& input) {
  const auto seen = in.presence.nodes.find(input.node);
  const bool occupied = seen != in.presence.nodes.end() && seen->second.connection.value != 0 &&
                        seen->second.instance != input.instance;
  if (occupied && !is_silent(in.presence, input.node, in.now.boot, in.limits.silent_after)) {
    return refuse(ErrorCode::Conflict,
                  fmt::format("registering node '{}': another agent with this name is connected "
                              "(instance '{}'); give each agent a name of its own",
                              input.node.str(), seen->second.instance.str()));
  }
  if (const std::optional<AttemptKey> elsewhere = runs_elsewhere(in, input)) {
    const JobRecord& job = in.ledger.jobs.at(elsewhere->first);
    const PlacedNode& placed = job.attempt(elsewhere->second)->part(input.node)->placed;
    return refuse(
        ErrorCode::Conflict,
        fmt::format("registering node '{0}': attempt {1} of job '{2}' may still run on another "
                    "machine of this name (instance '{3}', boot '{4}'); if this is another "
                    "machine, give it a name and a new, empty state directory of its own; if it "
                    "replaces the other, and that one is off, `muster node declare-dead {0}` ends "
                    "the wait, as does the end of the job's orphan grace",
                    input.node.str(), elsewhere->second.value, job.spec.name(),
                    placed.instance.str(), placed.boot_id.str()));
  }
  NodeRegistered event{.node = input.node,
                       .instance = input.instance,
                       .boot_id = input.boot_id,
                       .inventory = input.inventory,
                       .version = input.version};
  leave_out_ambiguous(event.inventory);
  const auto known = in.ledger.nodes.find(input.node);
  if (known != in.ledger.nodes.end()) {
    const NodeRecord& node = known->second;
    const bool same =
        !node.dead && node.instance == input.instance && node.boot_id == input.boot_id &&
        node.version == input.version &&
        google::protobuf::util::MessageDifferencer::Equals(node.inventory, event.inventory);
    if (same) return nothing();
  }
  return accept(std::move(event));
}

Decision decide_one(const Deciding& in, const ReportFact& input) {
  const auto job = in.ledger.jobs.find(JobId(input.fact.job_id()));
  if (job == in.ledger.jobs.end()) return nothing();
  const AttemptRecord* attempt = job->second.attempt(AttemptNo(input.fact.attempt()));
  const NodePart* part = attempt == nullptr ? nullptr : attempt->part(input.node);
  if (part == nullptr) return nothing();
  return FactDecider(in, input, job->second, *attempt, *part).run();
}

Decision decide_one(const Deciding& in, const ReportLogsCollected& input) {
  const auto job = in.ledger.jobs.find(input.job);
  const AttemptRecord* attempt =
      job == in.ledger.jobs.end() ? nullptr : job->second.attempt(input.attempt);
  const NodePart* part = attempt == nullptr ? nullptr : attempt->part(input.node);
  if (part == nullptr || part->logs_collected) return nothing();
  return accept(LogsCollected{.job = input.job, .attempt = input.attempt, .node = input.node});
}

}  // namespace muster::core
