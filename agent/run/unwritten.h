// Unwritten is what the agent knows of a run and its disk has refused to store: it is in memory
// until the disk takes it. The run's Host::Entry owns it. Plain values, for the agent's loop.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/reconcile.h"
#include "common/base/time.h"

namespace muster::agent {

struct Unwritten {
  struct Refused {
    v1::StartFailure why{};
    std::string text;
    v1::CheckpointReading checkpoint;
    std::string step;  // of the start; empty: none
    WallTime at{};
  };
  struct Swept {
    v1::SweptWhy why{};
    WallTime at{};
  };
  // It is here also if it was stored: it is written once, whether or not the disk takes it.
  struct ClockSkew {
    Duration ahead{};
    WallTime at{};
  };
  std::map<std::uint32_t, RankMarks> ends;  // by rank
  std::optional<Refused> refused;
  std::optional<Swept> swept;
  std::optional<ClockSkew> clock_skew;
  std::vector<RunSeen::Outputs> outputs;

  // Adds it to what the directory shows. `stop_signalled`: this agent has asked the worker to stop.
  void show(RunSeen& seen, bool stop_signalled) const {
    if (refused && !seen.refused) {
      seen.refused = {refused->why, refused->text};
      seen.refused_for = refused->checkpoint;
      seen.refused_step = refused->step;
      seen.refused_at = refused->at;
      seen.worker = WorkerState::Never;
    }
    for (const auto& [rank, end] : ends) {
      if (const auto exit = seen.exits.find(rank); exit != seen.exits.end()) end.show(exit->second);
    }
    if (clock_skew && !seen.clock_ahead) {
      seen.clock_ahead = clock_skew->ahead;
      seen.clock_ahead_at = clock_skew->at;
    }
    for (const RunSeen::Outputs& ended : outputs) seen.note_outputs(ended);
    if (swept && !seen.swept) {
      seen.swept = true;
      seen.swept_why = swept->why;
      seen.swept_at = swept->at;
      // The worker could not write down the request to stop either. Then ends that nobody saw are
      // not treated as causes.
      seen.stop_requested = seen.stop_requested || stop_signalled;
    }
  }
};

}  // namespace muster::agent
