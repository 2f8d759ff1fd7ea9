// DeepSpeed: _report_progress(), save_checkpoint() and load_checkpoint() of
// deepspeed/runtime/engine.py, train_batch() of deepspeed/runtime/pipe/engine.py, ThroughputTimer
// of deepspeed/utils/timer.py, deepspeed/runtime/checkpoint_engine/torch_checkpoint_engine.py, v0.6
// to v0.19.
//
// The logger's own words come first: "[2023-08-22 10:23:45,123] [INFO] [logging.py:96:log_dist]
// [Rank 0] ". Only a pipeline prints a loss.
#include <algorithm>
#include <array>

#include "common/engine/deepspeed/deepspeed.h"
#include "common/engine/files/line_fields.h"
#include "common/engine/model/grammar_rows.h"

namespace muster::engine {
namespace {

// The number after `key`, if it is finite and more than 0.
double number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  return std::max(leading_finite(text.substr(at + key.size())).value_or(0), 0.0);
}

// "[Rank 0] step=10, skipped=0, lr=[0.0001], mom=[(0.9, 0.999)]". `skipped` counts from the start
// of the training, not since the line before.
//
// Each process prints a line of step 0 in deepspeed.initialize(), before it loads a checkpoint. So
// step 0 is no step of the training.
bool read_step(std::string_view line, std::size_t at, LogLine& result) {
  std::string_view rest = line.substr(at + std::string_view("] step=").size());
  const auto number = take_number(rest);
  if (!number || *number == 0 || !take(rest, ", skipped=")) return false;
  StepLine step{.step = *number};
  constexpr std::string_view kRate = ", lr=";
  if (const std::size_t rate = rest.find(kRate); rate != std::string_view::npos) {
    if (const auto found = leading_finite(rest.substr(rate + kRate.size()))) {
      step.learning_rate = *found;
      step.has_learning_rate = true;
    }
  }
  result = {.kind = LineKind::Step, .step = step};
  return true;
}

// A pipeline: "steps: 10 loss: 2.3451 iter time (s): 0.512 samples/sec: 62.500". Other losses may
// come after the first one.
bool read_pipeline_step(std::string_view line, std::size_t at, LogLine& result) {
  if (at > 0 && line[at - 1] != ' ' && line[at - 1] != ']') return false;
  std::string_view rest = line.substr(at + std::string_view("steps: ").size());
  const auto number = take_number(rest);
  if (!number || !take(rest, " loss: ") || rest.find("iter time (s): ") == std::string_view::npos)
    return false;
  StepLine step{.step = *number};
  set_loss(step, rest);
  step.seconds = number_after(rest, "iter time (s): ");
  step.samples_per_second = number_after(rest, "samples/sec: ");
  result = {.kind = LineKind::Step, .step = step};
  return true;
}

// "epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=61.2, CurrSamplesPerSec=62.5,
// MemAllocated=1.2GB, MaxMemAllocated=3.4GB", v0.7 on. Its global_step counts from the start of the
// process, so it is no step of the training. It follows the line of its step.
bool read_rate(std::string_view line, std::size_t at, LogLine& result) {
  const double rate = number_after(line.substr(at), "CurrSamplesPerSec=");
  if (rate == 0) return false;
  result = {.kind = LineKind::Rate, .step = {.samples_per_second = rate}};
  return true;
}

// The step in a tag or path: "global_step100".
std::int64_t step_in(std::string_view text) {
  constexpr std::string_view kTag = "global_step";
  const std::size_t at = text.rfind(kTag);
  if (at == std::string_view::npos) return -1;
  text.remove_prefix(at + kTag.size());
  return take_number(text).value_or(-1);
}

LogLine line_of(LineKind kind, std::string_view path) {
  return {.kind = kind, .step = {.step = step_in(path)}, .path = path};
}

// "Saving model checkpoint: /save/global_step100/mp_rank_00_model_states.pt"
bool read_saving(std::string_view line, std::size_t at, LogLine& result) {
  const std::string_view path =
      trimmed(line.substr(at + std::string_view("Saving model checkpoint: ").size()));
  if (!path.ends_with(".pt")) return false;
  result = line_of(LineKind::SaveStarted, path);
  return true;
}

// "[Torch] Checkpoint global_step100 is ready now!", of each rank, up to v0.17.0.
bool read_saved(std::string_view line, std::size_t at, LogLine& result) {
  std::string_view rest = line.substr(at + std::string_view("[Torch] Checkpoint ").size());
  const std::size_t end = rest.find(" is ready now!");
  if (end == std::string_view::npos) return false;
  result = {.kind = LineKind::SaveDone, .step = {.step = step_in(rest.substr(0, end))}};
  return true;
}

// "[Torch] Loading checkpoint from /resume/global_step100/mp_rank_00_model_states.pt..."; "Begin
// Load" and "End Load" from v0.17.1 on.
bool read_file(std::string_view line, std::size_t at, std::string_view head, LineKind kind,
               LogLine& result) {
  std::string_view path = trimmed(line.substr(at + head.size()));
  while (path.ends_with('.')) path.remove_suffix(1);
  if (!path.ends_with(".pt")) return false;
  result = line_of(kind, path);
  return true;
}
constexpr std::string_view kLoading = "[Torch] Loading checkpoint from ";
constexpr std::string_view kLoaded = "[Torch] Loaded checkpoint from ";
constexpr std::string_view kBegins = "[Torch] Begin Load checkpoint from ";
constexpr std::string_view kEnds = "[Torch] End Load checkpoint from ";
bool read_loading(std::string_view line, std::size_t at, LogLine& result) {
  return read_file(line, at, kLoading, LineKind::LoadStarted, result);
}
bool read_loaded(std::string_view line, std::size_t at, LogLine& result) {
  return read_file(line, at, kLoaded, LineKind::Loaded, result);
}
bool read_begin(std::string_view line, std::size_t at, LogLine& result) {
  return read_file(line, at, kBegins, LineKind::LoadStarted, result);
}
bool read_end(std::string_view line, std::size_t at, LogLine& result) {
  return read_file(line, at, kEnds, LineKind::Loaded, result);
}

// "Unable to find latest file at /x/latest, if trying to load latest checkpoint please ..."
bool read_nothing_to_load(std::string_view, std::size_t, LogLine& result) {
  result = {.kind = LineKind::NothingToLoad};
  return true;
}

constexpr auto kHeads = std::to_array<LineHead>({
    {"] step=", read_step},
    {"steps: ", read_pipeline_step},
    {"CurrSamplesPerSec=", read_rate},
    {"Saving model checkpoint: ", read_saving},
    {"[Torch] Checkpoint ", read_saved},
    {kLoading, read_loading},
    {kLoaded, read_loaded},
    {kBegins, read_begin},
    {kEnds, read_end},
    {"Unable to find latest file at ", read_nothing_to_load},
});

}  // namespace

std::span<const LineHead> deepspeed_heads() { return kHeads; }

}  // namespace muster::engine
