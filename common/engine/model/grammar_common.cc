// The lines that small training programs print: a step, and on the same line a total or a loss.
// Examples: "step 10/300 loss 2.31", "Iter: 10, train loss: 2.3", "{'step': 30, 'loss': 0.25}"
#include <array>

#include "common/engine/files/line_fields.h"
#include "common/engine/model/grammar_rows.h"

namespace muster::engine {
namespace {

constexpr std::size_t kPrefixBytesMax = 256;  // a step begins before this byte
constexpr std::size_t kLossBytesMax = 4096;   // its loss is within so many bytes after the step

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Finds the loss: the last word before the number is "loss" or ends in it.
void find_loss(std::string_view text, StepLine& result) {
  text = text.substr(0, kLossBytesMax);
  for (std::size_t i = 0; i + 4 < text.size(); ++i) {
    if (lower(text[i]) != 'l' || lower(text[i + 1]) != 'o' || lower(text[i + 2]) != 's' ||
        lower(text[i + 3]) != 's')
      continue;
    if (i > 0 && is_word(text[i - 1]) && text[i - 1] != '_') continue;
    std::string_view rest = text.substr(i + 4);
    if (is_word(rest[0])) continue;
    skip(rest, " \t:='\"");
    set_loss(result, rest);
    if (result.has_loss || result.loss_not_finite) return;
  }
}

bool read_step(std::string_view line, std::size_t at, LogLine& result) {
  if (at >= kPrefixBytesMax || (at > 0 && is_word(line[at - 1]) && line[at - 1] != '_'))
    return false;
  const bool iter_word = lower(line[at]) == 'i';
  std::string_view rest = line.substr(at + 4);
  if (iter_word && (rest.starts_with("ation") || rest.starts_with("ATION"))) rest.remove_prefix(5);
  if (rest.empty() || (is_word(rest[0]) && !is_digit(rest[0]))) return false;
  const std::size_t before = rest.size();
  skip(rest, " \t:=#['\"");
  if (before - rest.size() > 12) return false;
  StepLine step;
  const auto number = take_number(rest);
  if (!number || (!rest.empty() &&
                  (is_word(rest[0]) || (rest[0] == '.' && rest.size() > 1 && is_digit(rest[1])))))
    return false;
  step.step = *number;
  std::string_view behind = rest;
  skip(behind, " ");
  if (take(behind, "/")) {
    skip(behind, " ");
    if (const auto total = take_number(behind); total && (behind.empty() || !is_word(behind[0])))
      step.total = *total;
  }
  find_loss(rest, step);
  if (!step.has_loss && !step.loss_not_finite && (step.total == 0 || step.total < step.step))
    return false;
  result = {.kind = LineKind::Step, .step = step};
  return true;
}

constexpr auto kHeads = std::to_array<LineHead>({
    {"step", read_step, false},
    {"Step", read_step, false},
    {"STEP", read_step, false},
    {"iter", read_step, false},
    {"Iter", read_step, false},
    {"ITER", read_step, false},
});

}  // namespace

std::span<const LineHead> common_heads() { return kHeads; }

}  // namespace muster::engine
