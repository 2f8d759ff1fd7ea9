// MindSpeed-MM beyond Megatron's lines: its FSDP2 back end saves and loads by mindspeed_mm/fsdp/checkpoint/dcp_checkpointer.py (26.x); its steps are printed as
// Megatron prints them (mindspeed_mm/fsdp/base_trainer.py, mindspeed_mm/training.py).
#include <array>

#include "common/engine/grammar_rows.h"
#include "common/engine/line_fields.h"

namespace muster::engine {
namespace {

// "Saved checkpoint to /ckpt/run7/iter_0000100": the step is in the name.
bool read_directory(std::string_view line, std::size_t at, std::string_view head, Said said, LogLine& result) {
  if (at > 0 && line[at - 1] != ' ' && line[at - 1] != ']' && line[at - 1] != ':' && line[at - 1] != '\t') return false;
  const std::string_view path = trimmed(line.substr(at + head.size()));
  const std::string_view name = path.substr(path.rfind('/') + 1);  // all of it without a slash
  LogLine found{.said = said, .path = path};
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
bool read_saved(std::string_view line, std::size_t at, LogLine& result) { return read_directory(line, at, "Saved checkpoint to ", Said::SaveDone, result); }
bool read_loaded(std::string_view line, std::size_t at, LogLine& result) { return read_directory(line, at, "Loaded checkpoint from ", Said::Loaded, result); }

constexpr auto kHeads = std::to_array<LineHead>({
    {"Saved checkpoint to ", read_saved},
    {"Loaded checkpoint from ", read_loaded},
});

}  // namespace

std::span<const LineHead> mindspeed_mm_heads() { return kHeads; }

}  // namespace muster::engine
