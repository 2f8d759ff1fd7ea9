#include "agent/core/run_phase.h"

#include "agent/core/reconcile.h"

namespace muster::agent {

RunPhase phase_of(const RunSeen& seen, const BootId& boot) {
  const bool alive = seen.worker == WorkerState::Spawned || seen.worker == WorkerState::Alive;
  if (seen.swept) return alive ? RunPhase::Ending : RunPhase::Over;
  if (!seen.boot_id.empty() && seen.boot_id != boot) return RunPhase::Rebooted;
  switch (seen.worker) {
    case WorkerState::None:
      return seen.worker_spoke || seen.refused ? RunPhase::ClaimLost : RunPhase::Unclaimed;
    case WorkerState::Spawned: return RunPhase::Starting;
    case WorkerState::Alive:
      if (seen.stop_requested) return RunPhase::Stopping;
      if (seen.started) return RunPhase::Running;
      return seen.setting_up ? RunPhase::SettingUp : RunPhase::Launching;
    case WorkerState::Dead: return RunPhase::Left;
    case WorkerState::Never: return seen.refused ? RunPhase::Refused : RunPhase::Refusing;
  }
  return RunPhase::Unclaimed;
}

std::string_view to_string(RunPhase phase) {
  switch (phase) {
    case RunPhase::Starting: return "starting";
    case RunPhase::Unclaimed: return "unclaimed";
    case RunPhase::ClaimLost: return "claim-lost";
    case RunPhase::Refusing: return "refusing";
    case RunPhase::Refused: return "refused";
    case RunPhase::Launching: return "launching";
    case RunPhase::SettingUp: return "setting-up";
    case RunPhase::Running: return "running";
    case RunPhase::Stopping: return "stopping";
    case RunPhase::Left: return "left";
    case RunPhase::Rebooted: return "rebooted";
    case RunPhase::Ending: return "ending";
    case RunPhase::Over: return "over";
  }
  return "";
}

std::string_view to_string(RunStep step) {
  switch (step) {
    case RunStep::WorkerClaimed: return "worker-claimed";
    case RunStep::AgentClaimed: return "agent-claimed";
    case RunStep::ReasonWritten: return "reason-written";
    case RunStep::SetupStarted: return "setup-started";
    case RunStep::SetupEnded: return "setup-ended";
    case RunStep::RanksStarted: return "ranks-started";
    case RunStep::StopWritten: return "stop-written";
    case RunStep::WorkerSwept: return "worker-swept";
    case RunStep::WorkerDied: return "worker-died";
    case RunStep::WorkerEnded: return "worker-ended";
    case RunStep::ClaimGone: return "claim-gone";
    case RunStep::Swept: return "swept";
  }
  return "";
}

}  // namespace muster::agent
