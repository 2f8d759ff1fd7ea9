#include "common/engine/model/grammar.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <span>
#include <vector>

#include "common/engine/files/line_fields.h"
#include "common/engine/files/pattern_set.h"
#include "common/engine/model/engine.h"
#include "common/engine/model/grammar_rows.h"

namespace muster::engine {
namespace {

constexpr std::size_t kLineBytesMax = 64 * 1024;

RE2::Options quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(1 << 20);  // a job may have three of them on every node
  return options;
}

// Searches all heads of its rows at once, and runs a head's parser where its text occurs.
class Heads final : public Grammar {
 public:
  explicit Heads(std::vector<LineHead> heads) : heads_(std::move(heads)), set_(texts(heads_)) {}

  [[nodiscard]] LogLine read(std::string_view line) const override {
    line = line.substr(0, kLineBytesMax);
    LogLine result;
    set_.scan(line.substr(0, kHeadBytesMax), [&](std::size_t pattern, std::size_t at) {
      const LineHead& head = heads_[pattern];
      if (!head.exact && result.kind != LineKind::Nothing) return true;
      return !head.read(line, at, result) || !head.exact;
    });
    return result;
  }

 private:
  static std::vector<std::string_view> texts(const std::vector<LineHead>& heads) {
    std::vector<std::string_view> texts;
    for (const LineHead& head : heads) texts.push_back(head.text);
    return texts;
  }
  std::vector<LineHead> heads_;
  PatternSet set_;
};

// The heads of an engine's row, with "auto" those of all engines and the common ones.
std::vector<LineHead> heads_of(std::string_view row) {
  std::vector<LineHead> heads;
  std::vector<std::span<const LineHead> (*)()> taken;
  const bool all = row == "auto";
  // Where two heads match a line alike, the first one counts: Megatron's words are the most
  // special.
  for (const Engine& engine : engine_table() | std::views::reverse) {
    if (!all && engine.grammar != row) continue;
    for (const auto lines : engine.log_lines) {
      if (lines == nullptr || std::ranges::find(taken, lines) != taken.end()) continue;
      taken.push_back(lines);
      const auto added = lines();
      heads.insert(heads.end(), added.begin(), added.end());
    }
  }
  if (all) heads.insert(heads.end(), common_heads().begin(), common_heads().end());
  return heads;
}

class None final : public Grammar {
 public:
  [[nodiscard]] LogLine read(std::string_view) const override { return {}; }
};

class Custom final : public Grammar {
 public:
  explicit Custom(const v1::Watching& watching) : step_(watching.step_regex(), quiet()) {
    if (!watching.loss_regex().empty())
      loss_ = std::make_unique<RE2>(watching.loss_regex(), quiet());
    if (watching.total().empty()) return;
    if (const auto number = whole_number(watching.total()))
      total_number_ = *number;
    else
      total_ = std::make_unique<RE2>(watching.total(), quiet());
  }

  [[nodiscard]] LogLine read(std::string_view line) const override {
    line = line.substr(0, kLineBytesMax);
    const auto text = group(step_, line);
    const auto number = text ? whole_number(*text) : std::nullopt;
    if (!number) return {};
    LogLine result{.kind = LineKind::Step, .step = {.step = *number, .total = total_number_}};
    if (total_)
      if (const auto total = group(*total_, line))
        result.step.total = whole_number(*total).value_or(0);
    if (loss_)
      if (const auto loss = group(*loss_, line)) set_loss(result.step, *loss);
    return result;
  }

 private:
  static std::optional<std::string_view> group(const RE2& pattern, std::string_view line) {
    re2::StringPiece found;
    if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), pattern, &found))
      return std::nullopt;
    return std::string_view(found.data(), found.size());
  }

  RE2 step_;
  std::unique_ptr<RE2> loss_, total_;
  std::int64_t total_number_ = 0;
};

}  // namespace

std::string pattern_problem(std::string_view pattern, int groups) {
  if (pattern.size() > 4096) return "the regular expression is longer than 4096 bytes";
  const RE2 compiled(re2::StringPiece(pattern.data(), pattern.size()), quiet());
  if (!compiled.ok())
    return fmt::format("the regular expression does not compile: {}", compiled.error());
  if (compiled.NumberOfCapturingGroups() < groups)
    return "the regular expression has no group (...) around the number";
  return {};
}

bool nan_sign(const StepLine& line) {
  return line.loss_not_finite || (!line.has_loss && line.not_finite > 0);
}

void set_loss(StepLine& line, std::string_view text) {
  const auto value = leading_double(text);
  if (!value) return;
  line.has_loss = std::isfinite(*value);
  line.loss_not_finite = !line.has_loss;
  line.loss = line.has_loss ? *value : 0;
}

Result<std::unique_ptr<Grammar>> make_grammar(const v1::Watching& watching) {
  const std::string& row = watching.grammar();
  if (std::vector<LineHead> heads = heads_of(row); !heads.empty())
    return std::unique_ptr<Grammar>(std::make_unique<Heads>(std::move(heads)));
  if (row == "none" || row.empty()) return std::unique_ptr<Grammar>(std::make_unique<None>());
  if (row != "custom") {
    std::string known;
    for (const Engine& engine : engine_table())
      if (engine.grammar != "auto") known += fmt::format("{} | ", engine.grammar);
    return fail(ErrorCode::Unsupported,
                fmt::format("reading progress: grammar '{}' is not known (auto | {}custom | none)",
                            row, known));
  }
  const auto check = [](const char* key, const std::string& pattern) -> Result<void> {
    const std::string problem = pattern_problem(pattern, 1);
    if (problem.empty()) return {};
    return fail(ErrorCode::InvalidArgument, fmt::format("observe.progress.{}: {}", key, problem));
  };
  if (auto sound = check("step", watching.step_regex()); !sound) return fail(sound.error());
  if (!watching.loss_regex().empty())
    if (auto sound = check("loss", watching.loss_regex()); !sound) return fail(sound.error());
  if (!watching.total().empty() && !whole_number(watching.total()))
    if (auto sound = check("total", watching.total()); !sound) return fail(sound.error());
  return std::unique_ptr<Grammar>(std::make_unique<Custom>(watching));
}

}  // namespace muster::engine
