// The phases of a run on its node, the moves between them, and what the agent does in each, as
// tables. Pure.
//
// The phase is derived from what the run directory and the processes show (RunSeen). Nothing stores
// it. docs/run-phases.md is written from the tables; a test compares.
//
//                        AgentClaimed              ReasonWritten           Swept
//     Starting, Unclaimed ---------> Refusing ---------------> Refused ---------> Over
//        |
//        | WorkerClaimed           RanksStarted           StopWritten
//        +---------> Launching ------------------> Running ----------> Stopping
//                     ^  |                             |                  |
//                     |  v                             |   WorkerSwept    |    WorkerEnded
//                    SettingUp                         +------------------+--> Ending ----> Over
//                                                      |    WorkerDied    |
//                                                      +------------------+--> Left ------> Over
//                                                                                   Swept
//
// An agent that reads several records at once sees a run some moves further. An agent that starts
// finds runs in any phase, also in Rebooted, to which no move leads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/ids.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct RunSeen;

enum class RunPhase : std::uint8_t {
  Starting,   // this incarnation prepares the start, or its worker has not claimed the run yet
  Unclaimed,  // a directory that nobody claimed, and this incarnation starts nothing in it
  ClaimLost,  // it was claimed, and the claim has been lost with its disk
  Refusing,   // claimed by an agent to say "never start this"; the reason is not written yet
  Refused,    // the reason is written, too
  Launching,  // claimed by a worker that lives
  SettingUp,  // that worker runs runtime.setup
  Running,    // every rank here has been started
  Stopping,   // the worker has written that it stops its ranks
  Left,       // the worker has ended without a sweep
  Rebooted,   // of an earlier boot, and not swept
  Ending,     // swept; its worker has not exited yet
  Over,       // swept, and nobody but this agent uses the directory
};
enum class RunStep : std::uint8_t {
  WorkerClaimed,
  AgentClaimed,
  ReasonWritten,
  SetupStarted,
  SetupEnded,
  RanksStarted,
  StopWritten,
  WorkerSwept,
  WorkerDied,   // before its last event
  WorkerEnded,  // after its last event, or before its claim
  ClaimGone,    // with its disk
  Swept,        // by the agent
};

struct RunMove {
  RunPhase from;
  RunStep on;
  RunPhase to;
};
inline constexpr std::array kRunMoves = {
    RunMove{RunPhase::Starting, RunStep::WorkerClaimed, RunPhase::Launching},
    RunMove{RunPhase::Starting, RunStep::AgentClaimed, RunPhase::Refusing},
    RunMove{RunPhase::Starting, RunStep::WorkerEnded, RunPhase::Unclaimed},
    RunMove{RunPhase::Starting, RunStep::ClaimGone, RunPhase::ClaimLost},
    RunMove{RunPhase::Unclaimed, RunStep::AgentClaimed, RunPhase::Refusing},
    // the worker of an earlier incarnation was quicker than this agent
    RunMove{RunPhase::Unclaimed, RunStep::WorkerClaimed, RunPhase::Launching},
    RunMove{RunPhase::Unclaimed, RunStep::ClaimGone, RunPhase::ClaimLost},
    RunMove{RunPhase::Refusing, RunStep::ReasonWritten, RunPhase::Refused},
    RunMove{RunPhase::Refused, RunStep::Swept, RunPhase::Over},
    RunMove{RunPhase::ClaimLost, RunStep::Swept, RunPhase::Over},
    RunMove{RunPhase::Launching, RunStep::SetupStarted, RunPhase::SettingUp},
    RunMove{RunPhase::Launching, RunStep::RanksStarted, RunPhase::Running},
    RunMove{RunPhase::Launching, RunStep::StopWritten, RunPhase::Stopping},
    RunMove{RunPhase::Launching, RunStep::WorkerSwept, RunPhase::Ending},
    RunMove{RunPhase::Launching, RunStep::WorkerDied, RunPhase::Left},
    RunMove{RunPhase::SettingUp, RunStep::SetupEnded, RunPhase::Launching},
    RunMove{RunPhase::SettingUp, RunStep::StopWritten, RunPhase::Stopping},
    RunMove{RunPhase::SettingUp, RunStep::WorkerSwept, RunPhase::Ending},
    RunMove{RunPhase::SettingUp, RunStep::WorkerDied, RunPhase::Left},
    RunMove{RunPhase::Running, RunStep::StopWritten, RunPhase::Stopping},
    RunMove{RunPhase::Running, RunStep::WorkerSwept, RunPhase::Ending},
    RunMove{RunPhase::Running, RunStep::WorkerDied, RunPhase::Left},
    RunMove{RunPhase::Stopping, RunStep::WorkerSwept, RunPhase::Ending},
    RunMove{RunPhase::Stopping, RunStep::WorkerDied, RunPhase::Left},
    RunMove{RunPhase::Left, RunStep::Swept, RunPhase::Over},
    RunMove{RunPhase::Rebooted, RunStep::Swept, RunPhase::Over},
    RunMove{RunPhase::Ending, RunStep::WorkerEnded, RunPhase::Over},
};

inline constexpr std::size_t kRunPhases = static_cast<std::size_t>(RunPhase::Over) + 1;

// What the agent does in a phase: whatever is ordered, and when a stop or a forget is ordered.
enum class RunDeed : std::uint8_t {
  Nothing,
  Refuse,         // claim the directory, and write why it never starts
  RefuseStopped,  // the same without blame: it was stopped before it started
  Stop,           // SIGTERM to the worker
  Sweep,          // end every process of the run, then mark it swept
  MarkSwept,      // proven without a sweep
  Forget,         // remove the directory
};
struct RunRule {
  RunPhase phase;
  RunDeed always, on_stop, on_forget;
  v1::SweptWhy why = v1::SWEPT_WHY_UNSPECIFIED;  // of a sweep
};
inline constexpr std::array kRunRules = {
    // A race for the claim is safer than a signal that may arrive before the worker's signal
    // handler exists. A worker that is quicker is adopted.
    RunRule{RunPhase::Starting, RunDeed::Nothing, RunDeed::RefuseStopped, RunDeed::RefuseStopped},
    // The agent crashed between the directory and the claim, or a worker died before its claim. The
    // claim decides. If the agent gets it, nothing ever ran here. If a worker was quicker, the next
    // reading of the directory finds it alive and adopts it. There is never a second spawn.
    RunRule{RunPhase::Unclaimed, RunDeed::Refuse, RunDeed::RefuseStopped, RunDeed::Refuse},
    // The run is treated like one whose worker cannot be found.
    RunRule{RunPhase::ClaimLost, RunDeed::Sweep, RunDeed::Sweep, RunDeed::Sweep,
            v1::SWEPT_WHY_CLAIM_LOST},
    RunRule{RunPhase::Refusing, RunDeed::Refuse, RunDeed::RefuseStopped, RunDeed::Refuse},
    // An earlier claim, or the whole directory, may be lost while the processes still live. So
    // search for them.
    RunRule{RunPhase::Refused, RunDeed::Sweep, RunDeed::Sweep, RunDeed::Sweep,
            v1::SWEPT_WHY_NEVER_STARTED},
    // A forget means that the controller counts the run as over: another agent of this name has
    // said so, or a person. Then its devices may be another run's by now.
    RunRule{RunPhase::Launching, RunDeed::Nothing, RunDeed::Stop, RunDeed::Stop},
    RunRule{RunPhase::SettingUp, RunDeed::Nothing, RunDeed::Stop, RunDeed::Stop},
    RunRule{RunPhase::Running, RunDeed::Nothing, RunDeed::Stop, RunDeed::Stop},
    RunRule{RunPhase::Stopping, RunDeed::Nothing, RunDeed::Nothing, RunDeed::Nothing},
    RunRule{RunPhase::Left, RunDeed::Sweep, RunDeed::Sweep, RunDeed::Sweep,
            v1::SWEPT_WHY_WORKER_DIED},
    // No process survives its boot. There is nothing to search for, and the recorded pids may
    // belong to other processes now.
    RunRule{RunPhase::Rebooted, RunDeed::MarkSwept, RunDeed::MarkSwept, RunDeed::MarkSwept,
            v1::SWEPT_WHY_REBOOTED},
    // Never forgotten under a living worker: its last records would go to a removed directory.
    RunRule{RunPhase::Ending, RunDeed::Nothing, RunDeed::Nothing, RunDeed::Nothing},
    RunRule{RunPhase::Over, RunDeed::Nothing, RunDeed::Nothing, RunDeed::Forget},
};

// `boot` is the boot of this agent.
RunPhase phase_of(const RunSeen& seen, const BootId& boot);
std::string_view to_string(RunPhase phase);
std::string_view to_string(RunStep step);

// True for phases in which a living worker has claimed the run and has not swept it.
constexpr bool is_supervised(RunPhase phase) {
  return phase == RunPhase::Launching || phase == RunPhase::SettingUp ||
         phase == RunPhase::Running || phase == RunPhase::Stopping;
}

constexpr const RunRule& rule_of(RunPhase phase) {
  return kRunRules[static_cast<std::size_t>(phase)];
}
// The phases that moves lead to from `from`, `from` included.
constexpr std::array<bool, kRunPhases> reachable_from(RunPhase from) {
  std::array<bool, kRunPhases> seen{};
  seen[static_cast<std::size_t>(from)] = true;
  for (std::size_t round = 0; round < kRunPhases; ++round) {
    for (const RunMove& move : kRunMoves) {
      if (seen[static_cast<std::size_t>(move.from)]) seen[static_cast<std::size_t>(move.to)] = true;
    }
  }
  return seen;
}
// False: no run does that; somebody has changed its files.
constexpr bool may_follow(RunPhase from, RunPhase to) {
  return reachable_from(from)[static_cast<std::size_t>(to)];
}

// There is one rule for each phase, at its place, and one move for each phase and step. Every phase
// can reach the last one, and nothing leaves it.
static_assert(kRunRules.size() == kRunPhases);
static_assert([] {
  for (std::size_t at = 0; at < kRunPhases; ++at) {
    if (kRunRules[at].phase != static_cast<RunPhase>(at)) return false;
    if (!may_follow(static_cast<RunPhase>(at), RunPhase::Over)) return false;
  }
  for (const RunMove& move : kRunMoves) {
    int same = 0;
    for (const RunMove& other : kRunMoves) same += other.from == move.from && other.on == move.on;
    if (same != 1 || move.from == RunPhase::Over) return false;
  }
  return true;
}());
// Only what is over is forgotten, and a sweep says why.
static_assert([] {
  for (const RunRule& rule : kRunRules) {
    for (const RunDeed deed : {rule.always, rule.on_stop, rule.on_forget}) {
      if (deed == RunDeed::Forget && rule.phase != RunPhase::Over) return false;
      const bool sweeps = deed == RunDeed::Sweep || deed == RunDeed::MarkSwept;
      if (sweeps != (rule.why != v1::SWEPT_WHY_UNSPECIFIED)) return false;
    }
  }
  return true;
}());

}  // namespace muster::agent
