// The grammars' own parts, one file each (grammar_megatron.cc, ...); grammar.cc puts them together.
#pragma once

#include <span>
#include <string_view>

#include "common/engine/grammar.h"

namespace muster::engine {

// Where `text` stands in a line, at `at`, `read` may find something; false: it was not what it
// looked like, and `result` is as before.
struct LineHead {
  std::string_view text;
  bool (*read)(std::string_view line, std::size_t at, LogLine& result);
  bool exact = true;  // an engine's own words; what others read counts only where no exact one does
};
// Heads stand in the first bytes of a line: a launcher's or logger's own prefix, and a progress bar
// of 50 three-byte cells, may go before.
inline constexpr std::size_t kHeadBytesMax = 384;

std::span<const LineHead> megatron_heads();
std::span<const LineHead> mindspeed_mm_heads();  // beyond megatron's
std::span<const LineHead> mindformers_heads();
// "step 10/300 loss 2.31", "Iter: 10, train loss: 2.3", "[step=10] loss=2.3"
std::span<const LineHead> common_heads();

// Takes the loss when the text starts with a number; one that is not finite is noted as such.
void set_loss(StepLine& line, std::string_view text);

}  // namespace muster::engine
