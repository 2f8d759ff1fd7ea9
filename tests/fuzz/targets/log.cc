// Logs: bytes in pieces of any size -> lines -> what every grammar and the evidence find in them.
// The pieces must not change what is found.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "agent/logs/evidence.h"
#include "agent/logs/line_scanner.h"
#include "common/engine/deepspeed/deepspeed.h"
#include "common/engine/evidence.h"
#include "common/engine/files/pattern_set.h"
#include "common/engine/megatron/megatron.h"
#include "common/engine/mindformers/mindformers.h"
#include "common/engine/mindspeed_mm/mindspeed_mm.h"
#include "common/engine/model/grammar.h"
#include "common/engine/model/grammar_rows.h"
#include "tests/fuzz/target.h"
#include "tests/unit/engine/line_text.h"

namespace muster::fuzz {
namespace {

using namespace muster::engine;

std::unique_ptr<Grammar> row(const char* name) {
  v1::Watching watching;
  watching.set_grammar(name);
  if (std::string_view(name) == "custom") {
    watching.set_step_regex(R"((?i)step[ =:]*(\d+))");
    watching.set_loss_regex(R"((?i)loss[ =:]*(\S+))");
    watching.set_total(R"(/(\d+))");
  }
  return std::move(make_grammar(watching).value());
}

const std::vector<std::unique_ptr<Grammar>>& grammars() {
  static const std::vector<std::unique_ptr<Grammar>> all = [] {
    std::vector<std::unique_ptr<Grammar>> made;
    for (const char* name :
         {"auto", "megatron", "mindspeed-mm", "mindformers", "deepspeed", "custom"})
      made.push_back(row(name));
    return made;
  }();
  return all;
}

bool within(std::string_view part, std::string_view line) {
  return part.empty() ||
         (part.data() >= line.data() && part.data() + part.size() <= line.data() + line.size());
}

// nullptr, or what is wrong with the result.
const char* wrong_with(const LogLine& found) {
  const StepLine& step = found.step;
  for (const std::int64_t count :
       {step.total, step.epoch, step.epochs, step.step_in_epoch, step.steps_per_epoch, step.covers,
        step.samples, step.batch, step.skipped, step.not_finite}) {
    if (count < 0) return "a count is negative";
  }
  if (step.step < -1) return "a step is negative";
  if (found.kind == LineKind::Step && step.step < 0) return "a step line has no step";
  if (step.has_loss && (!std::isfinite(step.loss) || step.loss_not_finite))
    return "a loss is no number";
  for (const double value :
       {step.seconds, step.span_seconds, step.learning_rate, step.loss_scale, step.gradient_norm,
        step.samples_per_second, step.tokens_per_second, step.device_samples_per_second,
        step.device_tflops, step.remaining_seconds}) {
    if (!std::isfinite(value)) return "a number is not finite";
  }
  return nullptr;
}

void check_line(std::string_view line) {
  for (const auto& grammar : grammars()) {
    const LogLine found = grammar->read(line);
    require(within(found.path, line), "a path stands in the line");
    if (const char* wrong = wrong_with(found)) broken(std::string(wrong) + ": " + line_text(found));
  }
  const Evidence evidence = evidence_in(line);
  require(within(evidence.code, line), "a code stands in the line");
  require(evidence.rank >= 0 && (evidence.rank > 0 || evidence.trouble == Trouble::None),
          "no evidence is of no trouble");
}

// `pieces` are the sizes of the pieces, used again and again.
std::vector<std::string> lines_of(std::string_view text, const std::vector<std::size_t>& pieces) {
  std::vector<std::string> lines;
  agent::LineScanner scanner;
  const auto line = [&](std::string_view one) { lines.emplace_back(one); };
  for (std::size_t i = 0; !text.empty(); ++i) {
    const std::string_view piece = text.substr(0, pieces[i % pieces.size()]);
    scanner.feed(piece, line);
    text.remove_prefix(piece.size());
  }
  scanner.finish(line);
  return lines;
}

// The first bytes of the input are the sizes: the fuzzer decides where the input is cut.
std::vector<std::size_t> sizes_of(std::string_view input) {
  std::vector<std::size_t> sizes;
  for (const char c : input.substr(0, 16)) sizes.push_back(1 + static_cast<unsigned char>(c) % 97);
  return sizes;
}

// All positions of all heads, as the set finds them and as a plain search finds them.
void check_patterns(std::string_view text) {
  static const std::vector<std::string_view> patterns = [] {
    std::vector<std::string_view> texts;
    for (const auto& heads : {megatron_heads(), mindspeed_mm_heads(), mindformers_heads(),
                              deepspeed_heads(), common_heads()})
      for (const LineHead& head : heads) texts.push_back(head.text);
    return texts;
  }();
  static const PatternSet set(patterns);
  std::vector<std::size_t> found(patterns.size());
  set.scan(text, [&](std::size_t pattern, std::size_t at) {
    require(text.substr(at).starts_with(patterns[pattern]), "a pattern stands where it is found");
    ++found[pattern];
    return true;
  });
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    std::size_t count = 0;
    for (std::size_t at = text.find(patterns[i]); at != std::string_view::npos;
         at = text.find(patterns[i], at + 1))
      ++count;
    require(found[i] == count, "a pattern is found once wherever it stands", patterns[i]);
  }
}

}  // namespace

void log(std::string_view input) {
  if (input.empty()) return;
  const std::vector<std::string> whole = lines_of(input, {input.size()});
  require(lines_of(input, {1}) == whole, "bytes one by one make the same lines");
  require(lines_of(input, sizes_of(input)) == whole, "pieces make the same lines");
  for (const std::string& line : whole) {
    require(!line.empty() && line.size() <= agent::LineScanner::kMost &&
                line.find_first_of("\r\n") == std::string::npos,
            "a line is one");
    check_line(line);
  }
  const std::string_view tail =
      input.substr(input.size() - std::min(input.size(), agent::kEvidenceTail));
  for (const Grammar* grammar : {static_cast<const Grammar*>(nullptr),
                                 static_cast<const Grammar*>(grammars().front().get())}) {
    const agent::FoundEvidence found = agent::find_evidence(tail, grammar);
    require(
        found.line.size() <= agent::kEvidenceMost && (found.line.empty() || is_message(found.line)),
        "evidence can be sent and shown", found.line);
    require(!found.line.empty() || found.kind == v1::EVIDENCE_KIND_UNSPECIFIED,
            "no line speaks of nothing");
  }
  check_patterns(input.substr(0, 4096));
}

}  // namespace muster::fuzz
