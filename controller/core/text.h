// Sentences for people out of the core's values: ages, causes, squashed evidence. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/base/time.h"
#include "controller/core/event.h"

namespace muster::core {

std::string age_text(Duration age);  // "41s", "3m20s", "2h5m", "800ms"
// "rank 3 on node 'n1' was killed by signal 9 (SIGKILL)"
std::string exit_text(const RankExited& exit);
// "the scheduler on node 'n1' ended with status 1"
std::string exit_text(const AuxiliaryExited& exit);
// "step 104 of 0x7f3a" -> "step # of 0x#": equal for the same failure again
std::string squash_digits(std::string_view text);
std::string_view to_string(FailureClass cls);
std::string_view to_string(StartFailure why);
std::string_view to_string(EvidenceKind kind);
std::string_view to_string(Outcome outcome);
// What a node did whose agent says that it does not hold what it had started: "came back without
// the run directory of attempt 1: ..."
std::string came_back_without(AttemptNo attempt);

}  // namespace muster::core
