#include "controller/core/recovery/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/model/spec_view.h"

namespace muster::core {

namespace {

// A signal that a program causes itself. All others are sent to it: by the kernel when memory runs
// out, by an operator, or by another program. Those are no evidence against the checkpoint.
bool own_signal(std::int32_t number) {
  constexpr std::array kOwn = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
  return std::ranges::find(kOwn, number) != kOwn.end();
}

// Failures of a rank that reads a bad checkpoint. Running out of memory is not among them: the
// older checkpoint needs the same amount.
bool may_come_of_checkpoint(const AttemptRecord& attempt, const Verdict& verdict) {
  const NodePart* part = attempt.part(verdict.node);
  if (part == nullptr || !verdict.rank) return false;
  const auto exit = part->exits.find(*verdict.rank);
  switch (verdict.cls) {
    case FailureClass::UserError: return true;
    case FailureClass::Signal: return exit != part->exits.end() && own_signal(exit->second.signal);
    case FailureClass::Oom:
    case FailureClass::Node:
    case FailureClass::Launch:
    case FailureClass::Worker:
    case FailureClass::Operator: return false;
  }
  return false;
}

// Compares checkpoints of this job's own attempts.
bool same_point(const ResumePoint& one, const ResumePoint& other) {
  return !one.from_start && !other.from_start && one.attempt == other.attempt &&
         one.step == other.step;
}

// The newest of the job's own checkpoints, except `left_out`.
std::optional<ResumePoint> newest_but(const JobRecord& job,
                                      const std::optional<ResumePoint>& left_out) {
  if (!resumes(job.spec)) return std::nullopt;
  const CheckpointRecord* newest = nullptr;
  for (const CheckpointRecord& checkpoint : job.checkpoints) {
    if (checkpoint.quarantined ||
        (left_out && checkpoint.attempt == left_out->attempt && checkpoint.step == left_out->step))
      continue;
    if (newest == nullptr ||
        std::pair(checkpoint.step, checkpoint.attempt) > std::pair(newest->step, newest->attempt))
      newest = &checkpoint;
  }
  if (newest == nullptr) return std::nullopt;
  return ResumePoint{.attempt = newest->attempt,
                     .step = newest->step,
                     .path = newest->path,
                     .shards = newest->shards};
}

// What a start found in a checkpoint.
struct Reading {
  const NodePart* part = nullptr;
  const NodeStartFailed* failure = nullptr;
};

// The latest reading of each node.
std::map<NodeName, Reading> readings_of(const JobRecord& job, const ResumePoint& point) {
  std::map<NodeName, Reading> readings;
  for (const AttemptRecord& attempt : job.attempts) {
    if (!attempt.resume || !same_point(*attempt.resume, point)) continue;
    for (const NodePart& part : attempt.parts) {
      if (part.start_failed && part.start_failed->why == StartFailure::Checkpoint &&
          part.start_failed->needed > 0)
        readings[part.placed.node] = {.part = &part, .failure = &*part.start_failed};
    }
  }
  return readings;
}

// The reader's part of the attempt that wrote the checkpoint. Nullptr: it had none.
const NodePart* writing_part(const AttemptRecord* writer, const NodePart& reader) {
  const NodePart* part = writer == nullptr ? nullptr : writer->part(reader.placed.node);
  const bool same =
      part != nullptr && !part->idle() &&
      (part->placed.instance == reader.placed.instance ||
       (!part->placed.boot_id.empty() && part->placed.boot_id == reader.placed.boot_id));
  return same ? part : nullptr;
}

std::ptrdiff_t writers(const AttemptRecord* writer) {
  return writer == nullptr ? 0 : std::ranges::count_if(writer->parts, [](const NodePart& part) {
    return !part.idle();
  });
}

// Layouts give shards several kinds of names. Only "rank_N" shows which rank wrote the shard.
bool wrote(const AttemptRecord* writer, const NodePart& reader, std::string_view shard) {
  const NodePart* part = writing_part(writer, reader);
  if (part == nullptr || writers(writer) == 1) return part != nullptr;
  constexpr std::string_view kRank = "rank_";
  if (!shard.starts_with(kRank)) return false;
  for (std::uint32_t offset = 0; offset < part->placed.rank_count; ++offset) {
    if (shard.substr(kRank.size()) == std::to_string(part->placed.first_rank.value + offset))
      return true;
  }
  return false;
}

std::string named(const std::vector<NodeName>& nodes, std::string_view how) {
  std::string text = fmt::format("node{} '{}'", nodes.size() > 1 ? "s" : "", nodes.front().str());
  if (nodes.size() > 1)
    text += fmt::format(" and {}", nodes.size() == 2 ? "'" + nodes.back().str() + "'"
                                                     : fmt::format("{} more", nodes.size() - 1));
  return text + std::string(how);
}

// Empty: the reports are not enough.
std::string torn_text(const std::map<NodeName, Reading>& readings, const AttemptRecord* writer) {
  std::map<std::string, std::vector<NodeName>> saying;
  for (const auto& [node, reading] : readings) {
    for (const std::string& shard : reading.failure->torn) {
      if (wrote(writer, *reading.part, shard))
        return named({node},
                     fmt::format(", which wrote it, has read it: {} is short or damaged", shard));
      saying[shard].push_back(node);
    }
  }
  for (const auto& [shard, nodes] : saying) {
    if (nodes.size() > 1)
      return named(nodes, fmt::format(" have read it: {} is short or damaged", shard));
  }
  return {};
}

std::string missing_text(const std::map<NodeName, Reading>& readings, const AttemptRecord* writer) {
  struct Saying {
    std::vector<NodeName> wrote, others;
    const NodeStartFailed* failure = nullptr;
  };
  std::map<std::string, Saying> listings;
  for (const auto& [node, reading] : readings) {
    if (reading.failure->there >= reading.failure->needed) continue;
    Saying& saying = listings[reading.failure->names_sha256];
    (writing_part(writer, *reading.part) != nullptr ? saying.wrote : saying.others).push_back(node);
    saying.failure = reading.failure;
  }
  for (const auto& [names, saying] : listings) {
    const std::string what =
        fmt::format("it has {} of its {} shards", saying.failure->there, saying.failure->needed);
    if (!saying.wrote.empty() &&
        static_cast<std::ptrdiff_t>(saying.wrote.size()) == writers(writer))
      return named(saying.wrote, fmt::format(", which wrote it, {} read it: {}",
                                             saying.wrote.size() > 1 ? "have" : "has", what));
    if (saying.others.size() > 1) return named(saying.others, " have read it: " + what);
  }
  return {};
}

}  // namespace

std::optional<ResumePoint> newest_checkpoint(const JobRecord& job) {
  if (std::optional<ResumePoint> own = newest_but(job, std::nullopt)) return own;
  const bool goes_on = job.spec.start().as() == v1::START_AS_RESUME ||
                       job.spec.start().as() == v1::START_AS_RESUME_OR_SCRATCH;
  return goes_on && !resumes(job.spec) ? std::nullopt : job.start;
}

std::optional<ResumePoint> suspect_checkpoint(const JobRecord& job, const AttemptRecord& attempt,
                                              const Verdict& verdict, std::int64_t best_step,
                                              const Limits& limits) {
  const AttemptRecord* before = job.before(attempt);
  if (!attempt.resume || before == nullptr || !before->resume || !before->verdict)
    return std::nullopt;
  const ResumePoint& from = *attempt.resume;
  const std::int64_t far = from.step + limits.suspect_steps;
  if (!same_point(from, *before->resume) || best_step > far || before->best_step > far)
    return std::nullopt;
  if (before->verdict->cls != verdict.cls || before->verdict->signature != verdict.signature)
    return std::nullopt;
  if (!may_come_of_checkpoint(attempt, verdict)) return std::nullopt;
  // One of the two attempts may have saved a newer checkpoint in these few steps. Then the next
  // attempt tries that one.
  const std::optional<ResumePoint> newest = newest_checkpoint(job);
  if (!newest || !same_point(*newest, from)) return std::nullopt;
  const bool older = newest_but(job, from) || (job.start && goes_on_from_start(job.spec));
  if (!older) return std::nullopt;
  return from;
}

std::optional<TornCheckpoint> torn_checkpoint(const JobRecord& job, const AttemptRecord& attempt) {
  const auto says = [](const NodePart& part) {
    return part.start_failed && part.start_failed->why == StartFailure::Checkpoint;
  };
  if (!attempt.resume || attempt.resume->from_start || std::ranges::none_of(attempt.parts, says))
    return std::nullopt;
  const ResumePoint& point = *attempt.resume;
  if (!has_checkpoint(job, point.attempt, point.step) || is_quarantined(job, point))
    return std::nullopt;
  const std::map<NodeName, Reading> readings = readings_of(job, point);
  const AttemptRecord* writer = job.attempt(point.attempt);
  std::string seen = torn_text(readings, writer);
  if (seen.empty()) seen = missing_text(readings, writer);
  if (seen.empty()) return std::nullopt;
  TornCheckpoint torn{.point = point, .seen = std::move(seen), .older = newest_but(job, point)};
  if (!torn.older && job.start && goes_on_from_start(job.spec)) torn.older = job.start;
  return torn;
}

bool is_quarantined(const JobRecord& job, const ResumePoint& point) {
  return !point.from_start &&
         std::ranges::any_of(job.checkpoints, [&](const CheckpointRecord& known) {
           return known.quarantined && known.attempt == point.attempt && known.step == point.step;
         });
}

bool accepts_checkpoints(const JobRecord& job, const AttemptRecord& attempt) {
  if (&attempt != job.current()) return false;
  return attempt.state == AttemptState::Completed || !is_final(job.phase);
}

bool has_checkpoint(const JobRecord& job, AttemptNo attempt, std::int64_t step) {
  // Newest last; the requested one is nearly always new.
  return std::ranges::any_of(job.checkpoints | std::views::reverse,
                             [&](const CheckpointRecord& known) {
                               return known.attempt == attempt && known.step == step;
                             });
}

std::int64_t step_to_beat(const JobRecord& job) {
  return job.start && goes_on_from_start(job.spec) ? std::max(job.best_step, job.start->step)
                                                   : job.best_step;
}

std::optional<std::int64_t> goes_on_from(const JobRecord& job, const AttemptRecord& attempt) {
  if (!attempt.resume || (attempt.resume->from_start && !goes_on_from_start(job.spec)))
    return std::nullopt;
  return attempt.resume->step;
}

std::string went_back_text(const JobRecord& job, const AttemptRecord& attempt) {
  const std::optional<std::int64_t> from = goes_on_from(job, attempt);
  if (!from || !attempt.first_step || *attempt.first_step > *from) return {};
  return fmt::format(
      "attempt {} did not go on from step {}: began at {}; the program has to load what is in "
      "${{resume.dir}} (MUSTER_RESUME_DIR)",
      attempt.number.value, *from, *attempt.first_step);
}

std::int64_t best_step_of(const Presence& presence, const JobRecord& job,
                          const AttemptRecord& attempt) {
  std::int64_t best = attempt.first_step.value_or(-1);
  if (const auto seen = presence.attempts.find({job.id, attempt.number});
      seen != presence.attempts.end())
    best = std::max(best, seen->second.best_step);
  return std::max(best, attempt.best_saved);
}

bool CheckpointSeen::complete() const {
  if (!sealed || expected == 0 || shards.size() < expected) return false;
  return std::ranges::all_of(shards, [](const auto& shard) { return shard.second.finished; });
}

}  // namespace muster::core
