#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "controller/core/chains/predecessors.h"
#include "controller/core/core.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/model/text.h"
#include "controller/core/nodes/drain.h"
#include "controller/core/placement/fitting_jobs.h"
#include "controller/core/recovery/checkpoints.h"
#include "controller/core/recovery/fence.h"
#include "controller/core/recovery/log_uploads.h"
#include "controller/core/recovery/uploads.h"

namespace muster::core {
namespace {

// How many jobs ahead are checked to find the one that blocks the others.
constexpr std::size_t kAheadConsideredMax = 64;

void explain_queued(std::vector<std::string>& lines, const Ledger& ledger, const Presence& presence,
                    const JobRecord& job, Now now, const Limits& limits) {
  if (!job.waits_for.empty()) {
    for (std::string& line : waits_for_text(ledger, presence, job.waits_for))
      lines.push_back(std::move(line));
    return;
  }
  if (const std::optional<Unheard> unheard =
          unheard_since_start(ledger, presence, job, now, limits)) {
    std::vector<std::string> names;
    for (const NodeName& node : unheard->nodes) names.push_back(node.str());
    if (job.attempts_lost == 0) {
      lines.push_back(
          fmt::format("the controller has just started: waits for a word from {}, at most {}",
                      some_of(names), age_text(unheard->until - now.boot)));
      return;
    }
    if (names.empty()) {
      lines.push_back(
          fmt::format("the journal's end was lost: waits for nodes that this journal "
                      "does not know, at most {}",
                      age_text(unheard->until - now.boot)));
      return;
    }
    lines.push_back(
        fmt::format("the journal's end was lost, and with it perhaps an attempt of this job that "
                    "still runs: waits for a word from {}, at most {}; `muster node declare-dead` "
                    "ends the wait for a machine that is really gone",
                    some_of(names), age_text(unheard->until - now.boot)));
    return;
  }
  const PlaceResult placed = place(ledger, presence, job, now, limits);
  if (!placed.why.empty())
    lines.push_back((placed.never ? "waits for other nodes: " : "waits: ") + placed.why);
  if (placed.never) return;
  // Only jobs that can be placed at all block others, and not while they wait for a pause.
  std::size_t ahead = 0;
  const JobRecord* first = nullptr;
  std::string first_waits;
  FittingJobs jobs(ledger, presence, now, limits);
  for (const JobRecord* other = jobs.next(); other != nullptr && other->id != job.id;
       other = jobs.next()) {
    if (++ahead > kAheadConsideredMax || first != nullptr) continue;
    PlaceResult ahead_of_it = place(ledger, presence, *other, now, limits);
    if (ahead_of_it.retry_at) continue;
    first = other;
    first_waits = ahead_of_it.why.empty() ? "it is about to be placed" : std::move(ahead_of_it.why);
  }
  const std::string in_line = fmt::format("{} job{} ahead in the queue (first in, first out)",
                                          ahead, ahead == 1 ? " is" : "s are");
  if (first != nullptr) {
    const bool same = first_waits == placed.why;
    // The job has other requirements for the same nodes. What these nodes have is already in the
    // lines.
    const auto nodes = [](const std::string& why) {
      return why.substr(std::min(why.find(": "), why.size()));
    };
    if (!same && !nodes(first_waits).empty() && nodes(first_waits) == nodes(placed.why))
      first_waits.resize(first_waits.find(": "));
    lines.push_back(fmt::format("{}; '{}' is next{}", in_line, first->spec.name(),
                                same ? " and waits for the same" : ": " + first_waits));
  } else if (ahead > kAheadConsideredMax) {
    lines.push_back(in_line);
  }
  if (lines.empty()) lines.emplace_back("is about to be placed");
}

// The latest check of the machine found its disk read-only or nearly full. Empty: it did not.
std::string room_text(const NodeName& name, const NodeSeen& seen) {
  // As the agent's --min-free, below which it starts nothing.
  constexpr std::uint64_t kBytesLeast = 256ULL << 20U, kMiB = 1ULL << 20U;
  if (!seen.host || !seen.host->disk_error().empty()) return {};
  if (seen.host->read_only())
    return fmt::format("the disk of the state directory of node '{}' is mounted read-only",
                       name.str());
  if (seen.host->disk_bytes() > 0 && seen.host->disk_bytes_free() < kBytesLeast)
    return fmt::format("the disk of the state directory of node '{}' has only {} MiB free",
                       name.str(), seen.host->disk_bytes_free() / kMiB);
  if (seen.host->inodes() > 0 && seen.host->inodes_free() == 0)
    return fmt::format("the disk of the state directory of node '{}' has no inodes left",
                       name.str());
  return {};
}

// Empty: the node's disk takes writes.
std::string disk_text(const Presence& presence, const AttemptSeen* attempt, const NodeName& name,
                      Now now) {
  const auto node = presence.nodes.find(name);
  if (node == presence.nodes.end()) return {};
  if (node->second.disk_trouble.empty()) return room_text(name, node->second);
  const std::string text = fmt::format(
      "node '{}' cannot write to its state directory ({}): ends of ranks are not seen before it "
      "can",
      name.str(), node->second.disk_trouble);
  if (attempt != nullptr) {
    if (const auto lease = attempt->leases_end.find(name); lease != attempt->leases_end.end())
      return text + fmt::format("; its ranks go on until their lease ends in {}",
                                age_text(std::max(Duration::zero(), lease->second - now.boot)));
  }
  return text + "; its ranks go on";
}

// What the drains of its nodes mean for a running attempt, one line for each node.
void explain_drains(std::vector<std::string>& lines, const Ledger& ledger,
                    const AttemptRecord& attempt, Now now) {
  std::size_t listed = 0;
  for (const NodePart& part : attempt.parts) {
    const auto node = ledger.nodes.find(part.placed.node);
    if (part.swept || node == ledger.nodes.end() || !node->second.drain) continue;
    if (++listed > kNodesNamed) return;
    const NodeDrained& drain = *node->second.drain;
    const std::string then =
        drain.deadline
            ? fmt::format("is stopped there in {}, and goes on elsewhere",
                          age_text(std::max(Duration::zero(), *drain.deadline - now.wall)))
            : std::string("goes on there until it ends");
    lines.push_back(fmt::format("node '{}' {}; attempt {} {}", part.placed.node.str(),
                                drain_text(drain), attempt.number.value, then));
  }
}

// How far the start has come on these nodes, one line each, as far as it is known.
void explain_starts(std::vector<std::string>& lines, const AttemptSeen* attempt,
                    const std::vector<std::string>& nodes) {
  if (attempt == nullptr) return;
  std::size_t listed = 0;
  for (const std::string& node : nodes) {
    const auto start = attempt->starts.find(NodeName(node));
    if (start == attempt->starts.end()) continue;
    const StartSeen& seen = start->second;
    std::string text = seen.step.empty() ? "" : fmt::format("step '{}'", seen.step);
    if (!seen.progress.empty())
      text = text.empty() ? seen.progress : fmt::format("{} ({})", seen.progress, text);
    if (!text.empty() && ++listed <= kNodesNamed)
      lines.push_back(fmt::format("node '{}': {}", node, text));
  }
}

void explain_live(std::vector<std::string>& lines, const Presence& presence, const JobRecord& job,
                  const AttemptRecord& attempt, Now now, const Limits& limits) {
  const auto seen = presence.attempts.find({job.id, attempt.number});
  const AttemptSeen* attempt_seen = seen == presence.attempts.end() ? nullptr : &seen->second;
  const auto is_set_up = [&](const NodeName& node) {
    if (attempt_seen == nullptr || setup_time(job.spec) == Duration::zero()) return false;
    const auto start = attempt_seen->starts.find(node);
    return start != attempt_seen->starts.end() && start->second.setting_up;
  };
  std::vector<std::string> not_started, setting_up;
  for (const NodePart& part : attempt.parts) {
    const NodeName& node = part.placed.node;
    if (!part.started && !part.swept)
      (is_set_up(node) ? setting_up : not_started).push_back(node.str());
    if (part.swept || part.idle()) continue;
    if (is_silent(presence, node, now.boot, limits.silent_after)) {
      lines.push_back(
          fmt::format("node '{}' is silent for {}; its ranks go on by themselves until the job's "
                      "orphan grace is over",
                      node.str(), age_text(now.boot - last_word(presence, node))));
    } else if (const std::string trouble = disk_text(presence, attempt_seen, node, now);
               !trouble.empty()) {
      lines.push_back(trouble);
    }
  }
  if (!setting_up.empty()) {
    const v1::RuntimeSpec& runtime = job.spec.runtime();
    std::string what;
    const auto add = [&what](bool has, const char* phase) {
      if (has) what += fmt::format("{}{}", what.empty() ? "" : ", ", phase);
    };
    add(copies_code(job.spec), "code.patches");
    add(fetches_files(job.spec), "shards of other nodes");
    add(has_staged_input(job.spec), "inputs in stores");
    add(!runtime.image().empty(), "runtime.image");
    add(!runtime.setup().empty(), "runtime.setup");
    lines.push_back(fmt::format("attempt {} is being set up ({}) on {}, within {} a node",
                                attempt.number.value, what, some_of(setting_up),
                                age_text(setup_time(job.spec))));
    explain_starts(lines, attempt_seen, setting_up);
  }
  if (std::string back = went_back_text(job, attempt); !back.empty())
    lines.push_back(std::move(back));
  if (const auto note = attempt.notes.find(Note::LossNotFinite); note != attempt.notes.end())
    lines.push_back(
        fmt::format("the loss was not a number at step {}", note->second.step.value_or(-1)));
  if (!not_started.empty()) {
    lines.push_back(fmt::format("attempt {} is being started; not started yet: {}",
                                attempt.number.value, some_of(not_started)));
    explain_starts(lines, attempt_seen, not_started);
  }
}

// The job's last step and its time, also for a training that hangs.
std::string steps_text(const Presence& presence, const JobRecord& job, const AttemptRecord& attempt,
                       Now now) {
  const auto seen = presence.attempts.find({job.id, attempt.number});
  if (seen == presence.attempts.end()) return {};
  const auto reporting_rank = std::ranges::find_if(
      seen->second.ranks, [](const auto& entry) { return entry.second.step >= 0; });
  if (reporting_rank == seen->second.ranks.end()) return {};
  const RankSeen& rank = reporting_rank->second;
  const std::string of = rank.total > 0 ? fmt::format(" of {}", rank.total) : "";
  if (seen->second.last_step_at == WallTime{})
    return fmt::format("step {}{} is done", rank.step, of);
  return fmt::format("step {}{} was {} ago", rank.step, of,
                     age_text(now.wall - seen->second.last_step_at));
}

// Explains what broke an attempt: the cause, its last output, the time, and where to find more.
void explain_verdict(std::vector<std::string>& lines, const JobRecord& job,
                     const AttemptRecord* attempt, const Verdict& verdict, std::string cause,
                     Now now) {
  lines.push_back(std::move(cause));
  if (!verdict.evidence.empty()) lines.push_back("it printed: " + verdict.evidence);
  const std::optional<WallTime> at =
      attempt != nullptr && attempt->broke_at ? attempt->broke_at : job.ended_at;
  if (attempt == nullptr || !at || verdict.cls == FailureClass::Operator) return;
  std::string more;
  if (verdict.rank) {
    more = fmt::format("`muster logs {} --attempt {} --rank {}` has what it printed before",
                       job.id.str(), attempt->number.value, verdict.rank->value);
  } else if (verdict.cls == FailureClass::Node && !verdict.node.empty()) {
    more = fmt::format("`muster node show {}` shows its state now", verdict.node.str());
  } else {
    more = fmt::format("`muster events {}` has what came before", job.id.str());
  }
  lines.push_back(
      fmt::format("attempt {}, {} ago; {}", attempt->number.value, age_text(now.wall - *at), more));
}

}  // namespace

std::vector<std::string> explain(const Ledger& ledger, const Presence& presence,
                                 const JobRecord& job, Now now, const Limits& limits) {
  std::vector<std::string> lines;
  const AttemptRecord* attempt = job.current();
  if (attempt != nullptr && attempt->verdict && !is_final(job.phase)) {
    explain_verdict(lines, job, attempt, *attempt->verdict,
                    fmt::format("attempt {} broke: {} ({})", attempt->number.value,
                                attempt->verdict->reason, to_string(attempt->verdict->cls)),
                    now);
  }
  switch (job.phase) {
    case JobPhase::Queued: explain_queued(lines, ledger, presence, job, now, limits); break;
    case JobPhase::Launching:
    case JobPhase::Running:
      explain_live(lines, presence, job, *attempt, now, limits);
      if (lines.empty())
        lines.push_back(fmt::format("attempt {} is running on every node", attempt->number.value));
      explain_drains(lines, ledger, *attempt, now);
      if (std::string steps = steps_text(presence, job, *attempt, now); !steps.empty())
        lines.push_back(std::move(steps));
      break;
    case JobPhase::Draining: {
      lines.push_back(fmt::format("attempt {} is being stopped: {}", attempt->number.value,
                                  attempt->broke_cause));
      const FenceCheck fence = check_fence(ledger, presence, job, *attempt, now, limits);
      for (const std::string& wait : fence.waits) lines.push_back("waits for " + wait);
      break;
    }
    case JobPhase::Completing: {
      if (attempt->state == AttemptState::Completed) {
        lines.push_back(fmt::format("it has ended well; its outputs are uploaded by {}",
                                    some_of(uploading_nodes(job))));
        break;
      }
      std::vector<std::string> unswept;
      for (const NodePart& part : attempt->parts) {
        if (!part.swept) unswept.push_back(part.placed.node.str());
      }
      lines.push_back(fmt::format("every rank ended with status 0; waits for the sweep of {}",
                                  some_of(unswept)));
      break;
    }
    case JobPhase::Succeeded:
      lines.emplace_back("succeeded");
      for (const AttemptRecord& one : job.attempts) {
        if (std::string back = went_back_text(job, one); !back.empty())
          lines.push_back(std::move(back));
      }
      break;
    case JobPhase::Failed:
    case JobPhase::Cancelled:
      if (job.verdict)
        explain_verdict(lines, job, attempt, *job.verdict,
                        fmt::format("{}: {}", to_string(job.phase), job.verdict->reason), now);
      else
        lines.emplace_back(to_string(job.phase));
      break;
  }
  for (std::string& line : explain_logs(job)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace muster::core
