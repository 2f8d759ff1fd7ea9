// The states of an attempt and the moves between them, as a table. Plain values.
//
//     Live --- Broke ----> Stopping --- TornDown ---> TornDown
//     Live --- AllDone --> Completed
//
// Only apply() moves an attempt. A cancel is no state: AttemptRecord.cancelled says why it broke.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace muster::core {

enum class AttemptState : std::uint8_t { Live, Stopping, TornDown, Completed };
enum class AttemptStep : std::uint8_t {
  Broke,     // AttemptBroke
  TornDown,  // AttemptEnded: no rank of it can advance any more
  AllDone,   // AttemptCompleted: every rank ended as the success condition requires
};

struct AttemptMove {
  AttemptState from;
  AttemptStep on;
  AttemptState to;
};
inline constexpr std::array kAttemptMoves = {
    AttemptMove{AttemptState::Live, AttemptStep::Broke, AttemptState::Stopping},
    AttemptMove{AttemptState::Stopping, AttemptStep::TornDown, AttemptState::TornDown},
    AttemptMove{AttemptState::Live, AttemptStep::AllDone, AttemptState::Completed},
};

// It is over: nothing of it needs its devices, except where a node is not swept yet.
constexpr bool is_over(AttemptState state) {
  return state == AttemptState::TornDown || state == AttemptState::Completed;
}
// Nothing: the move is not in the table.
constexpr std::optional<AttemptState> next_state(AttemptState from, AttemptStep on) {
  for (const AttemptMove& move : kAttemptMoves) {
    if (move.from == from && move.on == on) return move.to;
  }
  return std::nullopt;
}

// Nothing leaves a state that is over, and a state has one move for a step.
static_assert(std::ranges::none_of(kAttemptMoves,
                                   [](const AttemptMove& move) { return is_over(move.from); }));
static_assert(std::ranges::all_of(kAttemptMoves, [](const AttemptMove& move) {
  return std::ranges::count_if(kAttemptMoves, [&](const AttemptMove& other) {
           return other.from == move.from && other.on == move.on;
         }) == 1;
}));

}  // namespace muster::core
