// The lines of MindSpeed-MM that Megatron does not print. The FSDP2 back end saves and loads by
// mindspeed_mm/fsdp/checkpoint/dcp_checkpointer.py (26.x). Its steps are printed as Megatron prints
// them (mindspeed_mm/fsdp/train/train_engine.py, mindspeed_mm/training.py).
#include <array>

#include "common/engine/files/line_fields.h"
#include "common/engine/mindspeed_mm/mindspeed_mm.h"
#include "common/engine/model/grammar_rows.h"

namespace muster::engine {
namespace {

// "Saved checkpoint to /ckpt/run7/iter_0000100": the name contains the step.
bool read_directory(std::string_view line, std::size_t at, std::string_view head, LineKind kind,
                    LogLine& result) {
  if (at > 0 && line[at - 1] != ' ' && line[at - 1] != ']' && line[at - 1] != ':' &&
      line[at - 1] != '\t')
    return false;
  const std::string_view path = trimmed(line.substr(at + head.size()));
  const std::string_view name = path.substr(path.rfind('/') + 1);  // all of it without a slash
  LogLine found{.kind = kind, .path = path};
  if (name.starts_with("iter_")) {
    const auto step = whole_number(name.substr(5));
    if (!step) return false;
    found.step.step = *step;
  } else if (name != "release") {
    return false;
  }
  result = found;
  return true;
}
bool read_saved(std::string_view line, std::size_t at, LogLine& result) {
  return read_directory(line, at, "Saved checkpoint to ", LineKind::SaveDone, result);
}
bool read_loaded(std::string_view line, std::size_t at, LogLine& result) {
  return read_directory(line, at, "Loaded checkpoint from ", LineKind::Loaded, result);
}

// " [2026-02-20 08:11:09] ** validation after iteration 10 ** | validation steps: 4 | validation
// loss: 2.300000E+00 |"
bool read_evaluation(std::string_view line, std::size_t at, LogLine& result) {
  std::string_view rest =
      line.substr(at + std::string_view("** validation after iteration ").size());
  const auto number = take_number(rest);
  if (!number || !take(rest, " **")) return false;
  const std::size_t key = rest.find("validation loss:");
  if (key == std::string_view::npos) return false;
  StepLine step{.step = *number};
  set_loss(step, rest.substr(key + std::string_view("validation loss:").size()));
  result = {.kind = LineKind::Evaluation, .step = step};
  return true;
}

constexpr auto kHeads = std::to_array<LineHead>({
    {"Saved checkpoint to ", read_saved},
    {"Loaded checkpoint from ", read_loaded},
    {"** validation after iteration ", read_evaluation},
});

}  // namespace

std::span<const LineHead> mindspeed_mm_heads() { return kHeads; }

}  // namespace muster::engine
