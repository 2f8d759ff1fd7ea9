// The line of a log that tells best why its rank ended, and whether it speaks of a cause or of
// another rank's end. Pure. A traceback's last line counts even when no rule of common/engine knows
// its exception, and has the traceback's last frame behind it; of equally good lines the last one
// wins. A loss that has vanished (nan_sign) and did not come back counts as well, where no better
// line does.
#pragma once

#include <string>
#include <string_view>

#include "common/engine/evidence.h"
#include "common/engine/grammar.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

inline constexpr std::size_t kEvidenceMost = 1024;       // bytes of the answer
inline constexpr std::size_t kEvidenceTail = 256 << 10;  // bytes of the log worth handing in

struct FoundEvidence {
  // printable; with the code of its signature (EI0006) in front when its own place was cut off
  std::string line;
  v1::EvidenceKind kind = v1::EVIDENCE_KIND_UNSPECIFIED;
  int rank = 0;  // engine::Evidence's: what is better has the higher one
};
// The line as it is told.
FoundEvidence as_reported(std::string_view line, const engine::Evidence& evidence);

// `grammar`: whose steps are looked at for a loss that vanished; none: of no one's.
FoundEvidence find_evidence(std::string_view log_tail, const engine::Grammar* grammar = nullptr);
// The line alone.
std::string best_evidence(std::string_view log_tail);

// Consequences: time-outs, lost peers, and links, whose fault may be at the other end: with a rank
// that tells of anything else they are no cause. Lines that only point to other ones (heads of
// tracebacks, inner codes that come with nearly every other error) and interrupts are neither.
v1::EvidenceKind kind_of(const engine::Evidence& evidence);

}  // namespace muster::agent
