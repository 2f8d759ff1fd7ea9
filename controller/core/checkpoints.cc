#include "controller/core/checkpoints.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <ranges>

#include "controller/core/spec_view.h"

namespace muster::core {

namespace {

// A signal that a program brings upon itself. The others are sent: by the kernel that is out of memory, by an operator, by a stranger; they would set
// one sound checkpoint after the other aside.
bool own_signal(std::int32_t number) {
  constexpr std::array kOwn = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
  return std::ranges::find(kOwn, number) != kOwn.end();
}

// What a rank does that reads a bad checkpoint. Not running out of memory: the older one needs as much.
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

// Of checkpoints of this job's own attempts.
bool same_point(const ResumePoint& one, const ResumePoint& other) {
  return !one.from_start && !other.from_start && one.attempt == other.attempt && one.step == other.step;
}

// Of its own.
std::optional<ResumePoint> newest_but(const JobRecord& job, const std::optional<ResumePoint>& left_out) {
  if (!resumes(job.spec)) return std::nullopt;
  const CheckpointRecord* newest = nullptr;
  for (const CheckpointRecord& checkpoint : job.checkpoints) {
    if (checkpoint.set_aside || (left_out && checkpoint.attempt == left_out->attempt && checkpoint.step == left_out->step)) continue;
    if (newest == nullptr || std::pair(checkpoint.step, checkpoint.attempt) > std::pair(newest->step, newest->attempt)) newest = &checkpoint;
  }
  if (newest == nullptr) return std::nullopt;
  return ResumePoint{.attempt = newest->attempt, .step = newest->step, .path = newest->path};
}

}  // namespace

std::optional<ResumePoint> newest_checkpoint(const JobRecord& job) {
  if (std::optional<ResumePoint> own = newest_but(job, std::nullopt)) return own;
  const bool goes_on = job.spec.start().as() == v1::START_AS_RESUME || job.spec.start().as() == v1::START_AS_RESUME_OR_SCRATCH;
  return goes_on && !resumes(job.spec) ? std::nullopt : job.start;
}

std::optional<ResumePoint> suspect_checkpoint(const JobRecord& job, const AttemptRecord& attempt, const Verdict& verdict, std::int64_t best_step,
                                              const Limits& limits) {
  const AttemptRecord* before = job.before(attempt);
  if (!attempt.resume || before == nullptr || !before->resume || !before->verdict) return std::nullopt;
  const ResumePoint& from = *attempt.resume;
  const std::int64_t far = from.step + limits.suspect_steps;
  if (!same_point(from, *before->resume) || best_step > far || before->best_step > far) return std::nullopt;
  if (before->verdict->cls != verdict.cls || before->verdict->signature != verdict.signature) return std::nullopt;
  if (!may_come_of_checkpoint(attempt, verdict)) return std::nullopt;
  // One of them may have saved a newer one in these few steps: that is what the next attempt tries.
  const std::optional<ResumePoint> newest = newest_checkpoint(job);
  if (!newest || !same_point(*newest, from)) return std::nullopt;
  const bool older = newest_but(job, from) || (job.start && goes_on_from_start(job.spec));
  if (!older) return std::nullopt;
  return from;
}

bool accepts_checkpoints(const JobRecord& job, const AttemptRecord& attempt) {
  return &attempt == job.current() && (attempt.state != AttemptState::Ended || attempt.completed);
}

bool has_checkpoint(const JobRecord& job, AttemptNo attempt, std::int64_t step) {
  // Newest last, and the one asked for is nearly always new.
  return std::ranges::any_of(job.checkpoints | std::views::reverse,
                             [&](const CheckpointRecord& known) { return known.attempt == attempt && known.step == step; });
}

std::int64_t step_to_beat(const JobRecord& job) { return job.start && goes_on_from_start(job.spec) ? std::max(job.best_step, job.start->step) : job.best_step; }

std::int64_t best_step_of(const Presence& presence, const JobRecord& job, const AttemptRecord& attempt) {
  std::int64_t best = attempt.first_step.value_or(-1);
  if (const auto seen = presence.attempts.find({job.id, attempt.number}); seen != presence.attempts.end()) best = std::max(best, seen->second.best_step);
  return std::max(best, attempt.best_saved);
}

bool CheckpointSeen::complete() const {
  if (!sealed || expected == 0 || shards.size() < expected) return false;
  return std::ranges::all_of(shards, [](const auto& shard) { return shard.second.finished; });
}

}  // namespace muster::core
