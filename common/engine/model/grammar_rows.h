// The parts that the grammars share. Each engine has its own (../megatron/grammar.cc, ...), and
// grammar.cc combines them. Pure.
#pragma once

#include <span>
#include <string_view>

#include "common/engine/model/grammar.h"

namespace muster::engine {

// Where `text` occurs in a line, at `at`, `read` may find something. False: the text has another
// meaning, and `result` is unchanged.
struct LineHead {
  std::string_view text;
  bool (*read)(std::string_view line, std::size_t at, LogLine& result);
  bool exact = true;  // the engine's own words; other heads count only where no exact one matches
};
// Heads are in the first bytes of a line. A launcher's or logger's own prefix, and a progress bar
// of 50 three-byte cells, may come before them.
inline constexpr std::size_t kHeadBytesMax = 384;

// "step 10/300 loss 2.31", "Iter: 10, train loss: 2.3", "[step=10] loss=2.3"
std::span<const LineHead> common_heads();

// Reads the loss if the text starts with a number. A loss that is not finite is recorded as such.
void set_loss(StepLine& line, std::string_view text);

}  // namespace muster::engine
