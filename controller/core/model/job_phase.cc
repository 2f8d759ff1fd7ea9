#include "controller/core/model/job_phase.h"

namespace muster::core {

std::string_view to_string(JobPhase phase) {
  switch (phase) {
    case JobPhase::Queued: return "queued";
    case JobPhase::Launching: return "launching";
    case JobPhase::Running: return "running";
    case JobPhase::Draining: return "draining";
    case JobPhase::Completing: return "completing";
    case JobPhase::Succeeded: return "succeeded";
    case JobPhase::Failed: return "failed";
    case JobPhase::Cancelled: return "cancelled";
  }
  return "?";
}

std::string_view to_string(JobStep step) {
  switch (step) {
    case JobStep::Placed: return "Placed";
    case JobStep::AllNodesUp: return "AllNodesUp";
    case JobStep::AllRanksDone: return "AllRanksDone";
    case JobStep::Broke: return "Broke";
    case JobStep::TornDown: return "TornDown";
    case JobStep::GaveUp: return "GaveUp";
    case JobStep::Finished: return "Finished";
    case JobStep::CancelAsked: return "CancelAsked";
    case JobStep::StoppedForCancel: return "StoppedForCancel";
    case JobStep::PredecessorLost: return "PredecessorLost";
  }
  return "?";
}

}  // namespace muster::core
