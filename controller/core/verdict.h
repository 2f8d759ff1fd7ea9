// What broke an attempt, from all ranks' evidence, and whether the job may try again. Pure; called
// once an attempt, when its fence holds.
//
// Peers of a killed rank die too, a moment later and with a status that looks like a fault of their
// own. So the causes are ranked:
//   1  a node could not start its part
//   2  a rank or auxiliary process killed by a signal that muster did not send, or out of memory;
//      the first
//   3  ranks lost with their worker
//   4  a node that rebooted, died, went silent or lost its state
//   5  a rank's or auxiliary process's own non-zero status, or its own abort (SIGABRT is how
//      uncaught
//      errors about dead peers end, too); the first whose line of evidence is not known to speak of
//      another's end. The program's error, unless that line speaks of a full disk, which is the
//      node's
//   6  a rank that the worker itself had started, killed by SIGKILL after muster asked for a stop
//      and before muster's own SIGKILL: the peers of 7 fell over it
//   7  the first of those whose line does. Not the program's error: two faults of a network look
//      the same, so it never ends a job by coming twice
// Other exits that came after muster asked that node to stop are never causes.
//
// First: on one node by its clock; of several nodes by the controller's, arrival less the fact's
// age. Messages are under way for as long as a bar; within it one that tells a cause goes before
// one that tells a consequence, else the verdict names both.
#pragma once

#include <optional>
#include <string>

#include "controller/core/core.h"

namespace muster::core {

Verdict judge(const Ledger& ledger, const Presence& presence, const JobRecord& job,
              const AttemptRecord& attempt, Now now, const Limits& limits);

// Why no other attempt may follow this one, which is charged; nothing: it may. `attempt` is the
// current one, not yet folded as ended. When a checkpoint is quarantined for it (checkpoints.h),
// the
// same user error twice is not the end: the next attempt goes on from an older one, and if it fails
// so too, that is. Nor is it when the second of the two got further than the job ever was.
std::optional<std::string> gives_up(const JobRecord& job, const AttemptRecord& attempt,
                                    const Verdict& verdict, std::int64_t best_step,
                                    bool quarantines, Now now, const Limits& limits);

}  // namespace muster::core
