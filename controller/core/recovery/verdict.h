// Decides what broke an attempt, from the evidence of all ranks, and whether the job may try again.
// Pure. It is called once for each attempt, when its fence holds.
//
// Peers of a killed rank die too, a moment later and with a status that seems to be their own
// fault. So the causes are ranked:
//
//   1  a node could not start its part
//   2  a rank or auxiliary process was killed by a signal that muster did not send, or was out of
//      memory; the first one
//   3  ranks were lost with their worker
//   4  a node rebooted, died, went silent or lost its state
//   5  a rank's or auxiliary process's own non-zero status, or its own abort (uncaught errors about
//      dead peers end in SIGABRT, too); the first one whose line of evidence is not known to be
//      about the end of another process. It is the program's error, unless that line is about a
//      full disk: then it is the node's.
//   6  a rank that the worker itself had started was killed by SIGKILL, after muster requested a
//      stop and before muster's own SIGKILL: the peers in 7 failed because of it
//   7  the first one of those whose line is about the end of another process. It is not the
//      program's error: two faults of a network look the same, so coming twice never ends a job
//
// If every rank ended with status 0, success is missing. It is the program's error, unless an agent
// could not find out whether it is there: then it is that node's (unknown_success.h).
//
// Before all of these come a cancel, and the deadline of a node's drain: the operator wanted it so.
//
// Other exits after muster asked that node to stop are never causes.
//
// On one node, the first end is the first by the node's clock. For several nodes the controller's
// clock counts: the arrival minus the fact's age. Messages can be delayed, so ends within a short
// bar cannot be ordered. Within it, an end that shows a cause goes before one that shows a
// consequence; otherwise the verdict names the others too.
#pragma once

#include <optional>
#include <string>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

Verdict judge(const Ledger& ledger, const Presence& presence, const JobRecord& job,
              const AttemptRecord& attempt, Now now, const Limits& limits);

// Why no other attempt may follow this one, which is charged. Nothing: one may follow. `attempt` is
// the current one, not yet folded as ended.
//
// The same user error twice is not the end in two cases. First, a checkpoint is quarantined for it
// (checkpoints.h): the next attempt resumes from an older one, and if that fails the same way, the
// job ends. Second, the later attempt got further than the job ever was.
std::optional<std::string> gives_up(const JobRecord& job, const AttemptRecord& attempt,
                                    const Verdict& verdict, std::int64_t best_step,
                                    bool quarantines, Now now, const Limits& limits);

}  // namespace muster::core
