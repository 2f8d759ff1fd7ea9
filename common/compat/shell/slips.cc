#include "common/compat/shell/slips.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::launcher {
namespace {

constexpr std::size_t kSlipsMost = 8;
constexpr std::string_view kBlanks = " \t\r";

// The programs accept '-' and '_' between the words.
constexpr auto kOfLaunchers = std::to_array<std::string_view>(
    {"nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port", "rdzv-endpoint",
     "rdzv-id", "rdzv-backend", "worker-num", "local-worker-num"});
constexpr auto kOfTraining = std::to_array<std::string_view>({
    "save",
    "load",
    "data-path",
    "save-interval",
    "eval-interval",
    "eval-iters",
    "log-interval",
    "train-iters",
    "seq-length",
    "lr",
    "min-lr",
    "micro-batch-size",
    "global-batch-size",
    "num-layers",
    "hidden-size",
    "ffn-hidden-size",
    "num-attention-heads",
    "num-experts",
    "tokenizer-type",
    "tokenizer-model",
    "tokenizer-name-or-path",
    "vocab-file",
    "merge-file",
    "max-position-embeddings",
    "tensor-model-parallel-size",
    "pipeline-model-parallel-size",
    "context-parallel-size",
    "expert-model-parallel-size",
    "weight-decay",
    "clip-grad",
    "run-mode",
    "load-checkpoint",
});

bool ends_with_backslash(std::string_view line) { return line.ends_with('\\'); }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

struct Token {
  std::size_t line = 1;
  std::string_view text;
};

// Adds the words between blanks, line ends and brackets; a '\' that joins lines is not a word.
void add_tokens(std::string_view line, std::size_t number, std::vector<Token>& tokens) {
  constexpr std::string_view kEnds = " \t\r\"'()";
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(kEnds, at), line.size());
    if (const std::string_view word = line.substr(at, end - at); !word.empty() && word != "\\")
      tokens.push_back({.line = number, .text = word});
    if (end < line.size() && line[end] == ')')
      tokens.push_back({.line = number, .text = line.substr(end, 1)});
    at = end + 1;
  }
}

// Whether a shell sees the end of a command here, or the start of a redirection.
bool ends_command(std::string_view word) {
  const std::size_t mark = word.find_first_not_of("0123456789");
  return mark != std::string_view::npos && std::string_view("|&;<>").contains(word[mark]);
}

}  // namespace

bool wants_value(std::string_view flag, Flags flags) {
  if (!flag.starts_with("--")) return false;
  std::string name(flag.substr(2));
  std::ranges::replace(name, '_', '-');
  return std::ranges::find(kOfLaunchers, name) != kOfLaunchers.end() ||
         (flags == Flags::OfTraining && std::ranges::find(kOfTraining, name) != kOfTraining.end());
}

std::vector<Slip> slips_of(std::string_view script, Flags flags) {
  std::vector<Slip> slips;
  std::vector<Token> tokens;
  bool joined = false;  // the line before continues in this one
  std::size_t number = 0;
  for (std::string_view rest = script; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    const std::string_view bare = trimmed(line);
    if (bare.starts_with('#')) {
      joined = false;
      continue;
    }
    if (ends_with_backslash(bare) && !ends_with_backslash(line))
      slips.push_back(
          {.line = number,
           .text =
               "blanks follow the '\\': it joins no lines, and what follows is another command"});
    else if (bare == "\\" && !joined)
      slips.push_back(
          {.line = number,
           .text = "a '\\' alone, behind a line that has none: what follows is another command"});
    joined = ends_with_backslash(line);
    add_tokens(line, number, tokens);
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!wants_value(tokens[i].text, flags)) continue;
    const std::string_view next = i + 1 < tokens.size() ? tokens[i + 1].text : std::string_view();
    if (next.empty())
      slips.push_back(
          {.line = tokens[i].line,
           .text = fmt::format("'{}' has no value: the script ends behind it", tokens[i].text)});
    else if (next.starts_with("--") || next == ")" || ends_command(next))
      slips.push_back(
          {.line = tokens[i].line,
           .text = fmt::format("'{}' has no value: '{}' follows it", tokens[i].text, next)});
  }
  std::ranges::stable_sort(slips, {}, &Slip::line);
  if (slips.size() > kSlipsMost) slips.resize(kSlipsMost);
  return slips;
}

}  // namespace muster::launcher
