// Deliberately broken variants. They sit in the harness, around the real cores: each is one rule of the design left out. The product has no such
// switches. `muster-sim --mutants` proves that each is caught, and by which invariant.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace muster::sim {

enum class Mutant {
  None,
  NoFence,               // the next attempt is placed while ranks of the last one still run
  AckBeforeSync,         // facts are acknowledged when they are decided, not when they are durable
  ReplyBeforeSync,       // a submission is answered before it is durable
  OrdersBeforeSync,      // orders leave before the placement behind them is durable
  LoseSyncedTail,        // the journal loses its last synced batch in a crash
  ForgetHolders,         // an ended attempt gives its devices back though a silent node has not swept them
  SilenceIsDeath,        // a silent node of a job that is not in lockstep counts as dead at once
  ShortGrace,            // the controller trusts a grace that has not run out
  DoubleFacts,           // facts that are sent again are filed again
  DoubleSubmit,          // a request id that was seen before makes another job
  LateFactIsCurrent,     // a fact of an old attempt is filed under the current one
  TornCheckpoint,        // a checkpoint counts though shards of it are missing
  ForgetfulReplay,       // replay leaves out what a crash is not supposed to lose
  StartTwice,            // a restarted agent spawns a second worker, which does not heed the claim
  SkipSweep,             // "swept" is said without having looked
  StopOnAbsence,         // what orders do not mention (or no orders) is stopped
  IgnoreInstance,        // a placement on another instance of this node's agent is started
  IgnoreBoot,            // a placement on another boot of this node is started
  StaleOrders,           // orders of an older connection replace newer ones
  LeaseWithoutEcho,      // the orphan grace is renewed by the agent's own clock
  WorkerIgnoresLease,    // the worker never looks at its lease
  LoseSpool,             // a restarted agent forgets what it had not been able to report
  RefuseWithoutClaim,    // "never start it" is noted, but the claim is left for the worker to take
};

struct MutantRow {
  Mutant mutant;
  std::string_view name;
};
inline constexpr std::array kMutants = {
    MutantRow{Mutant::NoFence, "no-fence"},
    MutantRow{Mutant::AckBeforeSync, "ack-before-sync"},
    MutantRow{Mutant::ReplyBeforeSync, "reply-before-sync"},
    MutantRow{Mutant::OrdersBeforeSync, "orders-before-sync"},
    MutantRow{Mutant::LoseSyncedTail, "lose-synced-tail"},
    MutantRow{Mutant::ForgetHolders, "forget-holders"},
    MutantRow{Mutant::SilenceIsDeath, "silence-is-death"},
    MutantRow{Mutant::ShortGrace, "short-grace"},
    MutantRow{Mutant::DoubleFacts, "double-facts"},
    MutantRow{Mutant::DoubleSubmit, "double-submit"},
    MutantRow{Mutant::LateFactIsCurrent, "late-fact-is-current"},
    MutantRow{Mutant::TornCheckpoint, "torn-checkpoint"},
    MutantRow{Mutant::ForgetfulReplay, "forgetful-replay"},
    MutantRow{Mutant::StartTwice, "start-twice"},
    MutantRow{Mutant::SkipSweep, "skip-sweep"},
    MutantRow{Mutant::StopOnAbsence, "stop-on-absence"},
    MutantRow{Mutant::IgnoreInstance, "ignore-instance"},
    MutantRow{Mutant::IgnoreBoot, "ignore-boot"},
    MutantRow{Mutant::StaleOrders, "stale-orders"},
    MutantRow{Mutant::LeaseWithoutEcho, "lease-without-echo"},
    MutantRow{Mutant::WorkerIgnoresLease, "worker-ignores-lease"},
    MutantRow{Mutant::LoseSpool, "lose-spool"},
    MutantRow{Mutant::RefuseWithoutClaim, "refuse-without-claim"},
};

constexpr std::string_view to_string(Mutant mutant) {
  for (const MutantRow& row : kMutants) {
    if (row.mutant == mutant) return row.name;
  }
  return "none";
}
constexpr std::optional<Mutant> mutant_named(std::string_view name) {
  for (const MutantRow& row : kMutants) {
    if (row.name == name) return row.mutant;
  }
  return std::nullopt;
}

}  // namespace muster::sim
