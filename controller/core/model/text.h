// Makes sentences for users from the core's values: ages, causes, evidence without numbers. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/time.h"
#include "controller/core/model/event.h"

namespace muster::core {

std::string age_text(Duration age);  // "41s", "3m20s", "2h5m", "800ms"
// "rank 3 on node 'n1' was killed by signal 9 (SIGKILL)"
std::string exit_text(const RankExited& exit);
// "the scheduler on node 'n1' ended with status 1"
std::string exit_text(const AuxiliaryExited& exit);
// "step 104 of 0x7f3a" -> "step # of 0x#": equal if the same failure happens again.
std::string squash_digits(std::string_view text);
std::string_view to_string(FailureClass cls);
struct JobRecord;

std::string_view to_string(StartFailure why);
std::string_view to_string(SweptWhy why);
std::string_view to_string(EvidenceKind kind);
std::string_view to_string(Outcome outcome);
// "cancelled by alice: REASON". `by`: as in CancelRequested.
std::string cancelled_text(const std::string& by, const std::string& reason);
// "'n0', 'n1' and 3 more": at most so many by name
inline constexpr std::size_t kNodesNamed = 6;
std::string some_of(const std::vector<std::string>& nodes);
// About a node whose agent reports that it does not have what it had started: "came back without
// the run directory of attempt 1: ..."
std::string came_back_without(const JobRecord& job, AttemptNo attempt);

}  // namespace muster::core
