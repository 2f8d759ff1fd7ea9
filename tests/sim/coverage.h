// Counters of what happened in a history: faults by kind, transitions of a job's phases, and other
// things that must happen. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "controller/core/model/job_phase.h"

namespace muster::sim {

enum class Fault {
  MessageLost,        // in flight when a connection broke
  Delay,              // a direction stalled for seconds, then all arrived
  HalfOpen,           // one end noticed long after the other
  LateOldConnection,  // messages of an old connection arrived after a new one's Hello
  Duplicate,          // a fact or a submission was sent again
  Partition,          // a node could not reach the controller for a while
  AgentCrash,
  AgentPause,
  ControllerCrashIdle,
  ControllerCrashBeforeSync,  // the batch was lost
  ControllerCrashInSync,      // the batch was durable, nobody knew
  ControllerCrashAfterSync,   // durable and known, nothing released
  ControllerPause,
  SlowSync,
  WorkerKill,
  WorkerFrozen,
  RankKill,
  Reboot,
  RebootLosingFiles,
  NodeGone,  // off for long, or for ever
  WipedState,
  ClockJump,
  DiskFull,  // a start was refused because of it
  TwinMachine,
  JournalEndLost,
  CopyPutBack,
};
struct FaultRow {
  Fault fault;
  std::string_view name;
};
inline constexpr std::array kFaults = {
    FaultRow{Fault::MessageLost, "message lost with its connection"},
    FaultRow{Fault::Delay, "messages delayed for seconds"},
    FaultRow{Fault::HalfOpen, "half-open connection"},
    FaultRow{Fault::LateOldConnection, "message of an old connection after a new Hello"},
    FaultRow{Fault::Duplicate, "fact or request sent again"},
    FaultRow{Fault::Partition, "node cut off from the controller"},
    FaultRow{Fault::AgentCrash, "agent crashed"},
    FaultRow{Fault::AgentPause, "agent paused"},
    FaultRow{Fault::ControllerCrashIdle, "controller crashed between batches"},
    FaultRow{Fault::ControllerCrashBeforeSync, "controller crashed before the sync: batch lost"},
    FaultRow{Fault::ControllerCrashInSync, "controller crashed in the sync: batch kept"},
    FaultRow{Fault::ControllerCrashAfterSync, "controller crashed between sync and release"},
    FaultRow{Fault::ControllerPause, "controller paused"},
    FaultRow{Fault::SlowSync, "sync took seconds"},
    FaultRow{Fault::WorkerKill, "worker killed"},
    FaultRow{Fault::WorkerFrozen, "worker frozen, its ranks not"},
    FaultRow{Fault::RankKill, "rank killed"},
    FaultRow{Fault::Reboot, "node rebooted"},
    FaultRow{Fault::RebootLosingFiles, "node rebooted, unsynced files gone"},
    FaultRow{Fault::NodeGone, "node gone for long"},
    FaultRow{Fault::WipedState, "agent's state directory wiped"},
    FaultRow{Fault::ClockJump, "wall clock jumped"},
    FaultRow{Fault::DiskFull, "start refused by a full disk"},
    FaultRow{Fault::TwinMachine, "another machine of the same name"},
    FaultRow{Fault::JournalEndLost, "journal's end lost, and accepted"},
    FaultRow{Fault::CopyPutBack,
             "whole journal put back from an older copy, and the loss accepted"},
};

// Things that are counted only by name; each of them must happen, too.
inline constexpr std::array<std::string_view, 22> kMustBeSeen = {
    "chain submitted",
    "whole chain cancelled",
    "started from a stage's checkpoint: weights",
    "started from a stage's checkpoint: resume",
    "started from a stage's checkpoint again",
    "started from a stage that saved nothing",
    "cancelled: a stage saved nothing to start from",
    "a starting attempt went on after a loss",
    "a starting attempt broke after a loss",
    "a node registered that a loss had taken",
    "journal damaged behind an old head file",
    "agent's state directory put back from an older copy",
    "node drained",
    "node undrained",
    "node drained after the storm",
    "broken by the deadline of a drain",
    "a checkpoint is whole in the store",
    "everything uploaded while the job goes on elsewhere",
    "an old checkpoint left the store",
    "outputs uploaded",
    "logs uploaded",
    "outputs incomplete"};

struct Coverage {
  std::array<std::uint64_t, kFaults.size()> faults{};
  std::array<std::uint64_t, core::kJobMoves.size()> moves{};
  // fences, swept reasons, outcomes, refusals: for the reader
  std::map<std::string, std::uint64_t> seen;

  void hit(Fault fault) { ++faults[static_cast<std::size_t>(fault)]; }
  void add(const Coverage& other) {
    for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += other.faults[i];
    for (std::size_t i = 0; i < moves.size(); ++i) moves[i] += other.moves[i];
    for (const auto& [what, count] : other.seen) seen[what] += count;
  }
};

}  // namespace muster::sim
