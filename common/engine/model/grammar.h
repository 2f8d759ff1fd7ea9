// Log grammars: a grammar turns a line of a rank's log into what the line states about the
// training. The caller of make_grammar() owns the grammar. Pure.
//
// Each grammar has one row; docs/engines/log-grammars.md lists the releases of each:
//   megatron      Megatron-LM's training_log and checkpointing, core_r0.5 to main; MindSpeed-LLM
//                 prints the same
//   mindspeed-mm  megatron's, and the lines of the FSDP2 back end
//   mindformers   MindFormers' MFLossMonitor and CheckpointMonitor, r0.3 to master
//   deepspeed     DeepSpeed's steps, speed and checkpoints, v0.3 to v0.19
//   auto          all of these, else the common "step N/M loss X"
//   custom        the spec's own regular expressions (RE2: linear time for every line)
//   none
//
// One pass over the first bytes of a line finds the words that start such a text, and the parser
// runs only there. No grammar but custom allocates memory or uses a regular expression. A line is
// the text between two line ends (\n, \r or \r\n), so progress bars that redraw themselves are
// lines, too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::engine {

// What a line states about one step. 0 and false: the line does not state the value.
struct StepLine {
  std::int64_t step = -1;  // of the whole training, counted from 1
  std::int64_t total = 0;
  double loss = 0;
  bool has_loss = false;
  double seconds = 0;  // for each step

  bool loss_not_finite = false;  // the line names a loss, and the loss is nan or infinite
  std::int64_t epoch = 0;        // counted from 1
  std::int64_t epochs = 0;
  std::int64_t step_in_epoch = 0;  // counted from 1
  std::int64_t steps_per_epoch = 0;
  std::int64_t covers = 0;  // number of steps that the line covers; 0: all since the line before
  // of all steps that the trainer ran since its last callback: one step, or one sink of steps
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
  std::int64_t skipped = 0;     // covered steps whose update was left out
  std::int64_t not_finite = 0;  // covered steps whose loss was nan or infinite
};

// Whether the loss is not a number any more. Either the line states it, or the line leaves the loss
// out while the count of such steps grows (Megatron leaves a nan out).
bool nan_sign(const StepLine& line);

enum class LineKind {
  Nothing,
  Step,
  // belongs to the step line before it: samples_per_second, or device_samples_per_second, and
  // remaining_seconds
  Rate,
  EpochEnd,       // or the end of a sink: covers, span_seconds, seconds, loss as an average
  Evaluation,     // step or epoch, and the loss on data that is not used for training
  LossNotFinite,  // the trainer ends itself because of it
  SetUp,
  TrainingStarted,
  TrainingDone,
  TrainingSkipped,  // no training was requested: the program only evaluates
  Exiting,          // before its last step: a signal, a time limit, an interval
  StrategySaved,    // a run that had only to write the strategy file has written it
  SaveStarted,
  SaveScheduled,  // in the background; SaveDone follows
  SaveDone,
  LoadStarted,
  Loaded,
  NothingToLoad,  // training starts from random weights
};

struct LogLine {
  LineKind kind = LineKind::Nothing;
  // Save*, Load*: the step; -1 when the line does not state it (MindFormers names the epoch and the
  // step in the epoch, or sink)
  StepLine step;
  std::string_view path;  // Save*, Load*: path of the checkpoint as printed; points into the line
  bool local = false;     // Save*: kept only on the node, for a restart there
};

class Grammar {
 public:
  virtual ~Grammar() = default;
  // `line` has no line end. It may have any bytes and any length; only its first 64 KiB are read.
  [[nodiscard]] virtual LogLine read(std::string_view line) const = 0;
  [[nodiscard]] std::optional<StepLine> step(std::string_view line) const {
    const LogLine found = read(line);
    return found.kind == LineKind::Step ? std::optional(found.step) : std::nullopt;
  }
};
// Errors: an unknown row, or a regular expression that does not compile. A loss that is not a
// finite number sets loss_not_finite and no loss.
Result<std::unique_ptr<Grammar>> make_grammar(const v1::Watching& watching);

// Empty: the pattern is sound. Otherwise the text says what is wrong with it. `groups`: the least
// number of capturing groups that it needs.
std::string pattern_problem(std::string_view pattern, int groups);

// The rank alone of evidence_in() (common/engine/evidence.h), for a line that shows why a rank of
// the job ended. Higher = better evidence; 0 = none.
int evidence_rank(std::string_view line);

}  // namespace muster::engine
