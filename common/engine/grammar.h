// Log grammars, pure: a line of a rank's log -> what it says of progress. Rows: "megatron" (Megatron-LM training_log, core_r0.5 to
// main), "auto" (megatron's, else the common "step N/M loss X"), "custom" (the spec's own regular expressions, RE2: linear time whatever a line
// holds), "none". One pass over the bytes, no allocation on lines that do not match.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::engine {

struct StepLine {
  std::int64_t step = -1;
  std::int64_t total = 0;  // 0 = the line does not say
  double loss = 0;
  bool has_loss = false;
  double seconds = 0;  // a step; 0 = the line does not say
};

class Grammar {
 public:
  virtual ~Grammar() = default;
  // `line` without its end; any bytes, any length (longer than 64 KiB: only the first 64 KiB are looked at).
  [[nodiscard]] virtual std::optional<StepLine> step(std::string_view line) const = 0;
};
// Errors: an unknown row, a regular expression that does not compile. A loss that is not a finite number counts as none.
Result<std::unique_ptr<Grammar>> make_grammar(const v1::Watching& watching);

// Empty: the pattern is sound. Otherwise what is wrong with it. `groups`: capturing groups that it needs at least.
std::string pattern_problem(std::string_view pattern, int groups);

// A line that tells why a rank ended: traceback's last line, "Killed", CUDA/NPU out of memory, "No such file", ... Higher rank = better
// evidence; 0 = none. Causes (memory, disk, arguments, exceptions) stand above what follows from another rank's death (time-outs, lost peers).
int evidence_rank(std::string_view line);

}  // namespace muster::engine
