// Finds the log line that best shows why a rank ended, and decides whether the line names the cause
// or a consequence of another rank's end. Pure.
//
//   - The last line of a traceback counts even if no rule of common/engine knows its exception. The
//     last frame of the traceback is appended to the line.
//   - Of equally good lines the last one wins.
//   - A vanished loss (nan_sign) that did not become finite again counts too, if no better line
//     exists.
#pragma once

#include <string>
#include <string_view>

#include "common/engine/evidence.h"
#include "common/engine/model/grammar.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

inline constexpr std::size_t kEvidenceMost = 1024;       // bytes of the answer
inline constexpr std::size_t kEvidenceTail = 256 << 10;  // bytes of the log to pass

struct FoundEvidence {
  // Printable. If the line was cut before the code of its signature (EI0006), the code is in front.
  std::string line;
  v1::EvidenceKind kind = v1::EVIDENCE_KIND_UNSPECIFIED;
  int rank = 0;  // that of engine::Evidence: better evidence has a higher rank
};
// Returns the line in the form in which it is reported.
FoundEvidence as_reported(std::string_view line, const engine::Evidence& evidence);

// `grammar` reads the steps whose loss may have vanished; null: the loss is not checked.
FoundEvidence find_evidence(std::string_view log_tail, const engine::Grammar* grammar = nullptr);
// Returns only the line.
std::string best_evidence(std::string_view log_tail);

// Classifies evidence. Consequences are time-outs, lost peers, and link errors, whose fault may be
// at the other end. They are not the cause if any rank shows something else. Interrupts are neither
// cause nor consequence. The same holds for lines that only point to other lines: heads of
// tracebacks, and inner codes that accompany nearly every other error.
v1::EvidenceKind kind_of(const engine::Evidence& evidence);

}  // namespace muster::agent
