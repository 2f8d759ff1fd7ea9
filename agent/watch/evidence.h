// The line of a log that tells best why its rank ended. Pure. A traceback's last line counts even when no rule of common/engine knows its exception; of equally
// good lines the last one wins.
#pragma once

#include <string>
#include <string_view>

namespace muster::agent {

inline constexpr std::size_t kEvidenceMost = 1024;       // bytes of the answer
inline constexpr std::size_t kEvidenceTail = 256 << 10;  // bytes of the log worth handing in

std::string best_evidence(std::string_view log_tail);

}  // namespace muster::agent
