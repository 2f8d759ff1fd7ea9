// Deliberately broken variants. They sit in the harness (every use of `World::mutant`), around the
// real cores: each is one rule of
// the design left out. The product has no such switches. `muster-sim --mutants` proves that each is
// caught, and by which invariant.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace muster::sim {

enum class Mutant {
  None,
  NoFence,           // the next attempt is placed while ranks of the last one still run
  AckBeforeSync,     // facts are acknowledged when they are decided, not when they are durable
  ReplyBeforeSync,   // a submission is answered before it is durable
  OrdersBeforeSync,  // orders leave before the placement behind them is durable
  LoseSyncedTail,    // the journal loses its last synced batch in a crash
  // an ended attempt gives its devices back though a silent node has not swept them
  ForgetHolders,
  SilenceIsDeath,      // a silent node of a job that is not in lockstep counts as dead at once
  ShortGrace,          // the controller trusts a grace that has not run out
  DoubleFacts,         // facts that are sent again are filed again
  DoubleSubmit,        // a request id that was seen before makes another job
  LateFactIsCurrent,   // a fact of an old attempt is filed under the current one
  TornCheckpoint,      // a checkpoint counts though shards of it are missing
  ForgetfulReplay,     // replay leaves out what a crash is not supposed to lose
  StartTwice,          // a restarted agent spawns a second worker, which does not heed the claim
  SkipSweep,           // "swept" is said without having looked
  StopOnAbsence,       // what orders do not mention (or no orders) is stopped
  IgnoreInstance,      // a placement on another instance of this node's agent is started
  IgnoreBoot,          // a placement on another boot of this node is started
  StaleOrders,         // orders of an older connection replace newer ones
  LeaseWithoutEcho,    // the orphan grace is renewed by the agent's own clock
  WorkerIgnoresLease,  // the worker never looks at its lease
  LoseSpool,           // a restarted agent forgets what it had not been able to report
  TwinTakesName,       // another machine may have a node's name while ranks may run on the first
  RefuseWithoutClaim,  // "never start it" is noted, but the claim is left for the worker to take
  FrozenWorkerLives,   // a worker that does not stop its ranks is left to itself
  WaitForAllLogs,      // logs that can never come are waited for all the same
  // after an accepted loss of the journal's end jobs go on as if it were whole
  LossMeansNothing,
  ReuseNumbers,  // the next attempt gets a number that a lost one may have had
  // a copy that was put back lets agents in that were told more, and counts no loss
  AcceptWithoutBridge,
  NobodyFirst,     // a job is placed without a look at those that it waits for
  DeafToEnds,      // what the end of a job means for those that wait for it is forgotten
  HalfAChain,      // the last stage of a chain is left out of what becomes durable
  StartForgotten,  // only the first attempt begins with what the job starts with
  StartIsOwn,      // what the job starts with is looked for below its own attempts
  OldStart,        // a stage starts from an older checkpoint of another than its newest
};

struct MutantRow {
  Mutant mutant;
  std::string_view name;
  // the invariants that it breaks, by its own doing: anything else does not count as caught
  std::string_view expected;
};
inline constexpr std::array kMutants = {
    MutantRow{Mutant::NoFence, "no-fence",
              "no-step-after-next-exec one-current-attempt device-exclusive"},
    MutantRow{Mutant::AckBeforeSync, "ack-before-sync", "durable-before-visible"},
    MutantRow{Mutant::ReplyBeforeSync, "reply-before-sync", "durable-before-visible"},
    MutantRow{Mutant::OrdersBeforeSync, "orders-before-sync", "durable-before-visible"},
    MutantRow{Mutant::LoseSyncedTail, "lose-synced-tail",
              "acknowledged-never-lost journal-not-behind"},
    MutantRow{Mutant::ForgetHolders, "forget-holders", "device-exclusive"},
    MutantRow{Mutant::SilenceIsDeath, "silence-is-death",
              "no-step-after-next-exec one-current-attempt broken-for-a-cause"},
    MutantRow{Mutant::ShortGrace, "short-grace",
              "no-step-after-next-exec one-current-attempt broken-for-a-cause"},
    MutantRow{Mutant::DoubleFacts, "double-facts", "a-fact-is-filed-once"},
    MutantRow{Mutant::DoubleSubmit, "double-submit", "one-job-a-request"},
    MutantRow{Mutant::LateFactIsCurrent, "late-fact-is-current", "exits-are-true"},
    MutantRow{Mutant::TornCheckpoint, "torn-checkpoint", "checkpoints-are-whole"},
    MutantRow{Mutant::ForgetfulReplay, "forgetful-replay", "acknowledged-never-lost"},
    MutantRow{Mutant::StartTwice, "start-twice", "start-once"},
    MutantRow{Mutant::SkipSweep, "skip-sweep", "swept-is-true"},
    MutantRow{Mutant::StopOnAbsence, "stop-on-absence", "stop-is-explicit"},
    MutantRow{Mutant::IgnoreInstance, "ignore-instance", "start-once"},
    MutantRow{Mutant::IgnoreBoot, "ignore-boot", "start-once swept-is-true"},
    MutantRow{Mutant::StaleOrders, "stale-orders", "orders-never-older"},
    MutantRow{Mutant::LeaseWithoutEcho, "lease-without-echo",
              "no-step-after-next-exec one-current-attempt device-exclusive"},
    MutantRow{Mutant::WorkerIgnoresLease, "worker-ignores-lease",
              "no-step-after-next-exec one-current-attempt device-exclusive"},
    MutantRow{Mutant::LoseSpool, "lose-spool", "everything-ends"},
    MutantRow{Mutant::TwinTakesName, "twin-takes-name", "exits-are-true swept-is-true"},
    MutantRow{Mutant::RefuseWithoutClaim, "refuse-without-claim", "swept-is-true"},
    MutantRow{Mutant::FrozenWorkerLives, "frozen-worker-lives",
              "no-step-after-next-exec one-current-attempt device-exclusive"},
    MutantRow{Mutant::WaitForAllLogs, "wait-for-all-logs", "everything-closes"},
    MutantRow{Mutant::LossMeansNothing, "loss-means-nothing",
              "start-once device-exclusive no-step-after-next-exec one-current-attempt "
              "number-never-given-twice"},
    MutantRow{Mutant::ReuseNumbers, "reuse-numbers", "start-once number-never-given-twice"},
    MutantRow{Mutant::AcceptWithoutBridge, "accept-without-bridge",
              "start-once device-exclusive no-step-after-next-exec one-current-attempt "
              "number-never-given-twice"},
    MutantRow{Mutant::NobodyFirst, "nobody-first", "behind-its-predecessors"},
    MutantRow{Mutant::DeafToEnds, "deaf-to-ends", "everything-ends"},
    MutantRow{Mutant::HalfAChain, "half-a-chain", "all-or-none-of-a-chain"},
    MutantRow{Mutant::StartForgotten, "start-forgotten", "starts-where-it-should"},
    MutantRow{Mutant::StartIsOwn, "start-is-own", "starts-where-it-should"},
    MutantRow{Mutant::OldStart, "old-start", "starts-where-it-should"},
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
