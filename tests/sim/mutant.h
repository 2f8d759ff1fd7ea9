// Deliberately broken variants of the product. Plain values.
//
// Each mutant leaves out one rule of the design. The product has no such switches. Where the rule
// is in a core, the mutant is a patch of a copy of that core (tests/sim/patches, one file each).
// The others are in the harness: messages, the journal, processes (every use of `World::mutant`).
// `muster-sim-broken --mutants` proves that each mutant is caught, and by which invariant.
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
  OrdersBeforeSync,  // orders leave before their placement is durable
  LoseSyncedTail,    // the journal loses its last synced batch in a crash
  // An ended attempt gives its devices back although a silent node has not swept them.
  ForgetHolders,
  SilenceIsDeath,      // a silent node of a job that is not in lockstep counts as dead at once
  ShortGrace,          // the controller trusts a grace that is not over yet
  DoubleFacts,         // facts that are sent again are stored again
  DoubleSubmit,        // a request id that was seen before makes another job
  LateFactIsCurrent,   // a fact of an old attempt is stored under the current one
  TornCheckpoint,      // a checkpoint counts although shards of it are missing
  ForgetfulReplay,     // replay leaves out what a crash must not lose
  StartTwice,          // a restarted agent spawns a second worker, which ignores the claim
  SkipSweep,           // "swept" is reported without a check
  StopOnAbsence,       // a run that orders do not mention is stopped, also without any orders
  IgnoreInstance,      // a placement on another instance of this node's agent is started
  IgnoreBoot,          // a placement on another boot of this node is started
  StaleOrders,         // orders of an older connection replace newer ones
  LeaseWithoutEcho,    // the agent renews the orphan grace by its own clock
  LeaseFromArrival,    // the orphan grace counts from the arrival of an acknowledgement
  AcksForgotten,       // the controller forgets that it acknowledged heartbeats
  WorkerIgnoresLease,  // the worker never reads its lease
  LoseSpool,           // a restarted agent forgets what it had not reported yet
  TwinTakesName,       // another machine may get a node's name while ranks may run on the first
  RefuseWithoutClaim,  // the refusal is recorded, but the worker can still take the claim
  FrozenWorkerLives,   // a worker that does not stop its ranks is left alone
  WaitForAllLogs,      // the controller waits even for logs that can never arrive
  // After an accepted loss of the journal's end, jobs continue as if it were whole.
  LossMeansNothing,
  // After a loss, an attempt that was being started is not broken where a node does not have it.
  StartGoesOn,
  // The same, and it is ordered again. Peers' own rule is never alone: without it, propose() still
  // breaks the attempt in the batch of the Hello, and a broken attempt is not ordered to run.
  OrderAgain,
  ReuseNumbers,  // the next attempt gets a number that a lost one may have had
  // A restored copy admits agents that were sent more, and counts no loss.
  AcceptWithoutBridge,
  // An agent obeys a controller of an older lineage or epoch. Three checks are left out, because
  // each one hides the next: of the Hello by the controller, of the Welcome and of the orders by
  // the agent.
  OlderLineage,
  NobodyFirst,     // a job is placed without a check of its predecessors
  DeafToEnds,      // the end of a job has no effect on the jobs that wait for it
  HalfAChain,      // the last stage of a chain is left out of what becomes durable
  StartForgotten,  // only the first attempt begins with the job's start point
  StartIsOwn,      // the job's start point is searched for among its own attempts
  OldStart,        // a stage starts from an older checkpoint of another stage than its newest
  CancelAfterEnd,  // a job that has ended can be cancelled
  FenceWithoutReachable,  // the fence does not wait for reachable nodes to be swept
  ForgetBeforeLogs,       // a node may delete a run directory before its logs are collected
  StartTimeoutForSilent,  // the start's time-out counts for silent nodes, too
  PastTheInbox,           // deadlines are judged although items are left over
  SigtermBeforeWrite,     // a worker stops its ranks before it has recorded that it was asked to
  SweepBeforeScan,        // a sweep is reported before what was saved last is searched for
  PortEarly,              // a port is free again although rank 0's node is not swept
  DrainForgotten,         // placement uses nodes that drain
  MarkTooEarly,           // a checkpoint gets its mark when one node has uploaded its files
  UploadWhileItRuns,      // everything is uploaded although a later attempt writes there
  // Nodes wait for the files of a checkpoint of one that uploads no more.
  WaitForGoneUploads,
  WaitForLostUploads,  // a job waits for the outputs of a node that is lost
  LogsNotOrdered,      // a node that is swept is not ordered to upload the rest of its logs
};

struct MutantRow {
  Mutant mutant;
  std::string_view name;
  // The invariants that the mutant itself breaks. A break of any other invariant does not count as
  // caught.
  std::string_view expected;
  // A history that catches it, where the first few hundred may not; it is tried first. 0: none.
  std::uint64_t seed = 0;
};
inline constexpr std::array kMutants = {
    MutantRow{Mutant::NoFence, "no-fence",
              "no-step-after-next-exec one-current-attempt device-exclusive"},
    MutantRow{Mutant::AckBeforeSync, "ack-before-sync", "durable-before-visible"},
    MutantRow{Mutant::ReplyBeforeSync, "reply-before-sync", "durable-before-visible"},
    MutantRow{Mutant::OrdersBeforeSync, "orders-before-sync", "durable-before-visible"},
    MutantRow{Mutant::LoseSyncedTail, "lose-synced-tail",
              "acknowledged-never-lost journal-not-behind"},
    MutantRow{Mutant::ForgetHolders, "forget-holders", "device-exclusive", 70},
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
    MutantRow{Mutant::IgnoreInstance, "ignore-instance", "start-once", 139},
    MutantRow{Mutant::IgnoreBoot, "ignore-boot", "start-once swept-is-true", 1631},
    MutantRow{Mutant::StaleOrders, "stale-orders", "orders-never-older"},
    MutantRow{Mutant::LeaseWithoutEcho, "lease-without-echo",
              "no-step-after-next-exec one-current-attempt device-exclusive", 3451},
    MutantRow{Mutant::LeaseFromArrival, "lease-from-arrival",
              "no-step-after-next-exec one-current-attempt device-exclusive", 11794},
    MutantRow{Mutant::AcksForgotten, "acks-forgotten",
              "no-step-after-next-exec one-current-attempt device-exclusive broken-for-a-cause"},
    MutantRow{Mutant::WorkerIgnoresLease, "worker-ignores-lease",
              "no-step-after-next-exec one-current-attempt device-exclusive", 674},
    MutantRow{Mutant::LoseSpool, "lose-spool", "everything-ends"},
    MutantRow{Mutant::TwinTakesName, "twin-takes-name", "exits-are-true swept-is-true"},
    MutantRow{Mutant::RefuseWithoutClaim, "refuse-without-claim", "swept-is-true"},
    MutantRow{Mutant::FrozenWorkerLives, "frozen-worker-lives",
              "no-step-after-next-exec one-current-attempt device-exclusive", 15580},
    MutantRow{Mutant::WaitForAllLogs, "wait-for-all-logs", "everything-closes"},
    MutantRow{Mutant::LossMeansNothing, "loss-means-nothing",
              "start-once device-exclusive no-step-after-next-exec one-current-attempt "
              "number-never-given-twice"},
    MutantRow{Mutant::StartGoesOn, "start-goes-on", "durable-before-visible"},
    MutantRow{Mutant::OrderAgain, "order-again", "start-once"},
    MutantRow{Mutant::ReuseNumbers, "reuse-numbers", "start-once number-never-given-twice"},
    MutantRow{Mutant::AcceptWithoutBridge, "accept-without-bridge",
              "start-once device-exclusive no-step-after-next-exec one-current-attempt "
              "number-never-given-twice"},
    MutantRow{Mutant::OlderLineage, "older-lineage", "orders-never-older"},
    MutantRow{Mutant::NobodyFirst, "nobody-first", "behind-its-predecessors"},
    MutantRow{Mutant::DeafToEnds, "deaf-to-ends", "everything-ends"},
    MutantRow{Mutant::HalfAChain, "half-a-chain", "all-or-none-of-a-chain"},
    MutantRow{Mutant::StartForgotten, "start-forgotten", "starts-where-it-should"},
    MutantRow{Mutant::StartIsOwn, "start-is-own", "starts-where-it-should"},
    MutantRow{Mutant::OldStart, "old-start", "starts-where-it-should"},
    MutantRow{Mutant::CancelAfterEnd, "cancel-after-end", "final-is-final"},
    MutantRow{Mutant::FenceWithoutReachable, "fence-without-reachable",
              "no-step-after-next-exec one-current-attempt device-exclusive"},
    MutantRow{Mutant::ForgetBeforeLogs, "forget-before-logs", "everything-closes"},
    MutantRow{Mutant::StartTimeoutForSilent, "start-timeout-for-silent", "broken-for-a-cause",
              3128},
    MutantRow{Mutant::PastTheInbox, "past-the-inbox", "broken-for-a-cause", 2422},
    MutantRow{Mutant::SigtermBeforeWrite, "sigterm-before-write", "exits-are-true"},
    MutantRow{Mutant::SweepBeforeScan, "sweep-before-scan", "goes-on-from-the-newest"},
    MutantRow{Mutant::PortEarly, "port-early", "port-exclusive", 1779},
    MutantRow{Mutant::DrainForgotten, "drain-forgotten", "drain-is-kept"},
    MutantRow{Mutant::MarkTooEarly, "mark-too-early", "a-mark-comes-last"},
    MutantRow{Mutant::UploadWhileItRuns, "upload-while-it-runs", "uploads-when-nothing-writes"},
    MutantRow{Mutant::WaitForGoneUploads, "wait-for-gone-uploads",
              "everything-ends everything-closes"},
    MutantRow{Mutant::WaitForLostUploads, "wait-for-lost-uploads", "everything-ends"},
    MutantRow{Mutant::LogsNotOrdered, "logs-not-ordered", "everything-closes"},
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
