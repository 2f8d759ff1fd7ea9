// The phases of a job and the moves between them, as a table. Plain values.
//
// docs/lifecycle.md is generated from the table, and a test compares the two.
//
//                 1 Placed             2 AllNodesUp
//     Queued -------------> Launching -------------> Running
//      ^  \                   |    \                /    |
//      |   \         5 Broke  |     \ 3            / 4   |  6 Broke
//      |    \                 |      \ AllRanksDone      |
//      |     \                |       v          v       |
//      |      \               |       Completing --------|-- 11 Finished --> Succeeded
//      |       \              |           | 7 Broke      |
//      |        \             v           v              |
//      +---------\------- Draining <---------------------+
//      8 TornDown \        |     |
//                  v       |     +------------ 9 GaveUp -------------------> Failed
//     12 CancelAsked,      +------------------ 10 StoppedForCancel --------> Cancelled
//     13 PredecessorLost
//                  +-------------------------------------------------------> Cancelled
//
// The numbers are positions in kJobMoves, from 1; docs/lifecycle.md has a line for each. The phase
// is the only state. A requested cancel is a separate fact, which decides the arrow that leaves
// Draining.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::core {

enum class JobPhase : std::uint8_t {
  Queued,
  Launching,
  Running,
  Draining,
  Completing,
  Succeeded,
  Failed,
  Cancelled
};
enum class JobStep : std::uint8_t {
  Placed,            // AttemptPlaced
  AllNodesUp,        // the last NodeStarted
  AllRanksDone,      // the last rank ended with status 0
  Broke,             // AttemptBroke
  TornDown,          // AttemptEnded, and another attempt may follow
  GaveUp,            // JobEnded Failed
  Finished,          // AttemptCompleted and JobEnded Succeeded
  CancelAsked,       // CancelRequested while queued: nothing to stop
  StoppedForCancel,  // JobEnded Cancelled after the ranks were stopped
  // JobEnded Cancelled, for a job that waits for another one. That one ended without success, or
  // without the checkpoint that this job starts with.
  PredecessorLost,
};

struct JobMove {
  JobPhase from;
  JobStep on;
  JobPhase to;
  std::string_view meaning;
};

inline constexpr std::array kJobMoves = {
    JobMove{JobPhase::Queued, JobStep::Placed, JobPhase::Launching,
            "a gang of free devices was found, all or nothing"},
    JobMove{JobPhase::Launching, JobStep::AllNodesUp, JobPhase::Running,
            "every node has exec'd its ranks"},
    JobMove{JobPhase::Launching, JobStep::AllRanksDone, JobPhase::Completing,
            "every rank ended well before the last node reported its start"},
    JobMove{JobPhase::Running, JobStep::AllRanksDone, JobPhase::Completing,
            "every rank ended with status 0"},
    JobMove{JobPhase::Launching, JobStep::Broke, JobPhase::Draining,
            "a rank or a node failed, or a cancel came: the rest is being stopped"},
    JobMove{JobPhase::Running, JobStep::Broke, JobPhase::Draining,
            "a rank or a node failed, or a cancel came: the rest is being stopped"},
    JobMove{JobPhase::Completing, JobStep::Broke, JobPhase::Draining,
            "the ranks ended, but not with the success that was asked for"},
    JobMove{JobPhase::Draining, JobStep::TornDown, JobPhase::Queued,
            "no rank of the attempt can advance any more; the next attempt may be placed"},
    JobMove{JobPhase::Draining, JobStep::GaveUp, JobPhase::Failed,
            "budget used up, a user error seen twice, or no progress in five attempts"},
    JobMove{JobPhase::Draining, JobStep::StoppedForCancel, JobPhase::Cancelled,
            "stopped on request"},
    JobMove{JobPhase::Completing, JobStep::Finished, JobPhase::Succeeded,
            "swept on every node, success is what the spec says, and outputs are uploaded"},
    JobMove{JobPhase::Queued, JobStep::CancelAsked, JobPhase::Cancelled, "nothing was running"},
    JobMove{JobPhase::Queued, JobStep::PredecessorLost, JobPhase::Cancelled,
            "a job of its `schedule.after` ended without success, or without the checkpoint that "
            "it starts with: it can never be placed"},
    JobMove{JobPhase::Completing, JobStep::StoppedForCancel, JobPhase::Cancelled,
            "cancelled while its outputs were uploaded"},
};

constexpr bool is_final(JobPhase phase) {
  return phase == JobPhase::Succeeded || phase == JobPhase::Failed || phase == JobPhase::Cancelled;
}
// Nothing: the move is not in the table.
constexpr std::optional<JobPhase> next_phase(JobPhase from, JobStep on) {
  for (const JobMove& move : kJobMoves) {
    if (move.from == from && move.on == on) return move.to;
  }
  return std::nullopt;
}
std::string_view to_string(JobPhase phase);
std::string_view to_string(JobStep step);

inline constexpr std::array kJobPhases = {
    JobPhase::Queued,     JobPhase::Launching, JobPhase::Running, JobPhase::Draining,
    JobPhase::Completing, JobPhase::Succeeded, JobPhase::Failed,  JobPhase::Cancelled};

// The phases that arrows lead to from `from`, `from` included.
constexpr std::array<bool, kJobPhases.size()> reachable_from(JobPhase from) {
  std::array<bool, kJobPhases.size()> seen{};
  seen[static_cast<std::size_t>(from)] = true;
  for (std::size_t round = 0; round < kJobPhases.size(); ++round) {
    for (const JobMove& move : kJobMoves) {
      if (seen[static_cast<std::size_t>(move.from)]) seen[static_cast<std::size_t>(move.to)] = true;
    }
  }
  return seen;
}

// Nothing leaves a final phase. Every phase is reachable from the first one. Every phase can reach
// a final one. There is one arrow for each phase and step.
static_assert(std::ranges::none_of(kJobMoves,
                                   [](const JobMove& move) { return is_final(move.from); }));
static_assert(std::ranges::all_of(reachable_from(JobPhase::Queued),
                                  [](bool reached) { return reached; }));
static_assert(std::ranges::all_of(kJobPhases, [](JobPhase from) {
  const auto seen = reachable_from(from);
  return std::ranges::any_of(
      kJobPhases, [&](JobPhase to) { return is_final(to) && seen[static_cast<std::size_t>(to)]; });
}));
static_assert(std::ranges::all_of(kJobMoves, [](const JobMove& move) {
  return std::ranges::count_if(kJobMoves, [&](const JobMove& other) {
           return other.from == move.from && other.on == move.on;
         }) == 1;
}));

}  // namespace muster::core
