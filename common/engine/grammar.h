// Log grammars, pure: a line of a rank's log -> what it says of the training. Rows, each with its
// releases in docs/engines/log-grammars.md:
//   megatron      Megatron-LM's training_log and checkpointing, core_r0.5 to main; MindSpeed-LLM
//                 prints the same
//   mindspeed-mm  megatron's, and the lines of the FSDP2 back end
//   mindformers   MindFormers' MFLossMonitor and CheckpointMonitor, r0.3 to master
//   auto          all of these, else the common "step N/M loss X"
//   custom        the spec's own regular expressions (RE2: linear time whatever a line holds)
//   none
// One pass over the first bytes of a line finds the words that start such a text; only there it is
// read. No allocation, no regular expression but custom's. A line is what stands between two ends
// (\n, \r or \r\n): progress bars that redraw themselves are lines, too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::engine {

// What a line says of one step. 0 and false: it does not say.
struct StepLine {
  std::int64_t step = -1;  // of the whole training, counted from 1
  std::int64_t total = 0;
  double loss = 0;
  bool has_loss = false;
  double seconds = 0;  // a step

  bool loss_not_finite = false;  // a loss is named, and it is nan or infinite
  std::int64_t epoch = 0;        // counted from 1
  std::int64_t epochs = 0;
  std::int64_t step_in_epoch = 0;  // counted from 1
  std::int64_t steps_per_epoch = 0;
  std::int64_t covers = 0;  // steps that it is about; 0: all since the line before
  // of all that the trainer ran since its last callback: one step, or one sink of them
  double span_seconds = 0;
  double learning_rate = 0;
  bool has_learning_rate = false;
  double loss_scale = 0;
  double gradient_norm = 0;
  bool has_gradient_norm = false;
  bool overflow = false;
  std::int64_t samples = 0;       // consumed so far
  std::int64_t batch = 0;         // samples a step, all ranks together
  double samples_per_second = 0;  // all ranks together
  double tokens_per_second = 0;   // all ranks together
  double device_samples_per_second = 0;
  double device_tflops = 0;  // TFLOP/s
  double remaining_seconds = 0;
  std::int64_t skipped = 0;     // steps among the covered ones whose update was left out
  std::int64_t not_finite = 0;  // and those whose loss was nan or infinite
};

// The loss is no number any more: it says so, or it is left out while the count of such steps grows
// (Megatron leaves a nan out).
bool nan_sign(const StepLine& line);

enum class LineKind {
  Nothing,
  Step,
  // belongs to the step line before it: device_samples_per_second, remaining_seconds
  Rate,
  EpochEnd,       // or the end of a sink: covers, span_seconds, seconds, loss as an average
  Evaluation,     // step or epoch, loss on data not trained on
  LossNotFinite,  // the trainer ends itself for it
  SetUp,
  TrainingStarted,
  TrainingDone,
  TrainingSkipped,  // none was asked for: it evaluates alone
  Exiting,          // before its last step: a signal, a time, an interval
  StrategySaved,    // a run that was to write the strategy file only has done so
  SaveStarted,
  SaveScheduled,  // in the background; SaveDone follows
  SaveDone,
  LoadStarted,
  Loaded,
  NothingToLoad,  // training starts from random weights
};

struct LogLine {
  LineKind kind = LineKind::Nothing;
  // Save*, Load*: the step, -1 when not said (MindFormers names epoch and step in the epoch, or
  // sink)
  StepLine step;
  std::string_view path;  // Save*, Load*: of the checkpoint, as printed; into the line
  bool local = false;     // Save*: kept on the node only, for a restart there
};

class Grammar {
 public:
  virtual ~Grammar() = default;
  // `line` without its end; any bytes, any length (longer than 64 KiB: only the first 64 KiB are
  // looked at).
  [[nodiscard]] virtual LogLine read(std::string_view line) const = 0;
  [[nodiscard]] std::optional<StepLine> step(std::string_view line) const {
    const LogLine found = read(line);
    return found.kind == LineKind::Step ? std::optional(found.step) : std::nullopt;
  }
};
// Errors: an unknown row, a regular expression that does not compile. A loss that is not a finite
// number counts as none.
Result<std::unique_ptr<Grammar>> make_grammar(const v1::Watching& watching);

// Empty: the pattern is sound. Otherwise what is wrong with it. `groups`: capturing groups that it
// needs at least.
std::string pattern_problem(std::string_view pattern, int groups);

// A line that tells why a rank ended (common/engine/evidence.h): the rank alone. Higher = better
// evidence; 0 = none.
int evidence_rank(std::string_view line);

}  // namespace muster::engine
