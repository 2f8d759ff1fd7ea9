// Which number the next attempt of a job has, and from when on it may be placed. Pure.
#pragma once

#include <optional>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

// The number is beyond every number that was used, as far as the ledger and the nodes know.
AttemptNo next_attempt(const JobRecord& job, const Presence& presence);

// recovery.backoff: the next attempt of a queued job is not placed before this time. Nothing: it
// may be placed now. Only an attempt that was charged makes the job wait.
std::optional<BootTime> backoff_end(const JobRecord& job, const Presence& presence, Now now,
                                    const Limits& limits);

}  // namespace muster::core
