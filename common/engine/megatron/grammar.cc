// Megatron-LM: training_log(), evaluate_and_print_results(), print_datetime() of
// megatron/training/training.py and the messages of checkpointing.py, core_r0.5 to main.
//
// Time stamps and a launcher's prefixes differ between releases, but the text after the key words
// does not. Fields are read by key, in any order.
#include <array>

#include "common/engine/files/line_fields.h"
#include "common/engine/megatron/megatron.h"
#include "common/engine/model/grammar_rows.h"

namespace muster::engine {
namespace {

// Inside a path or another word the text is no head.
bool starts_text(std::string_view line, std::size_t at) {
  return at == 0 || line[at - 1] == ' ' || line[at - 1] == ']' || line[at - 1] == '\t';
}

void read_field(std::string_view key, std::string_view value, StepLine& step, bool& lm_loss,
                double& tokens_per_sample) {
  const auto number = [&](double& to) {
    if (const auto found = leading_finite(value)) to = *found;
  };
  const auto whole = [&](std::int64_t& to) {
    std::string_view rest = value;
    skip(rest, " ");
    if (const auto found = take_number(rest)) to = *found;
  };
  if (key == "lm loss" || (key == "loss" && !lm_loss)) {
    // Other losses ("load_balancing_loss", "mtp_1 loss") do not replace it.
    step.has_loss = step.loss_not_finite = false;
    lm_loss = key == "lm loss";
    set_loss(step, value);
  } else if (key.starts_with("elapsed time per iteration")) {
    double time = 0;
    number(time);
    if (time > 0)
      step.seconds = key.ends_with("(ms)") ? time / 1000 : key.ends_with("(s)") ? time : 0;
  } else if (key == "learning rate") {
    if (const auto found = leading_finite(value)) {
      step.learning_rate = *found;
      step.has_learning_rate = true;
    }
  } else if (key == "grad norm") {
    if (const auto found = leading_finite(value)) {
      step.gradient_norm = *found;
      step.has_gradient_norm = true;
    }
  } else if (key == "loss scale") {
    number(step.loss_scale);
  } else if (key == "consumed samples") {
    whole(step.samples);
  } else if (key == "global batch size") {
    whole(step.batch);
  } else if (key == "number of skipped iterations") {
    whole(step.skipped);
  } else if (key == "number of nan iterations") {
    whole(step.not_finite);
  } else if (key == "samples per second") {
    number(step.samples_per_second);
  } else if (key == "tokens per sample") {
    number(tokens_per_sample);
  } else if (key == "throughput per GPU (TFLOP/s/GPU)" || key == "TFLOPs") {
    number(step.device_tflops);
  }
}

// " [2025-06-18 14:02:11] iteration 100/ 2000 | consumed samples: 25600 | elapsed time per
// iteration (ms): 8123.4 | ... | lm loss: 8.134521E+00 |"
bool read_step(std::string_view line, std::size_t at, LogLine& result) {
  if (!starts_text(line, at)) return false;
  std::string_view rest = line.substr(at + std::string_view("iteration").size());
  if (rest.empty() || (rest[0] != ' ' && !is_digit(rest[0]))) return false;
  const auto steps = take_fraction(rest);
  if (!steps || !take(rest, "|")) return false;
  StepLine step{.step = steps->part, .total = steps->whole};
  bool lm_loss = false;
  double tokens_per_sample = 0;
  while (!rest.empty()) {
    const std::string_view field = rest.substr(0, rest.find('|'));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
    const std::size_t colon = field.find(':');
    if (colon != std::string_view::npos)
      read_field(trimmed(field.substr(0, colon)), field.substr(colon + 1), step, lm_loss,
                 tokens_per_sample);
  }
  if (step.seconds > 0 && step.batch > 0) {
    const double samples_per_second = static_cast<double>(step.batch) / step.seconds;
    if (step.samples_per_second == 0) step.samples_per_second = samples_per_second;
    step.tokens_per_second = tokens_per_sample * samples_per_second;
  }
  result = {.kind = LineKind::Step, .step = step};
  return true;
}

// Parses the text after "loss at iteration": " 1000 | lm loss value: 2.300000E+00 | lm loss PPL:
// 9.974182E+00 | ", with "on validation set" or "on test set" at the end of training.
bool read_evaluated(std::string_view rest, LogLine& result) {
  skip(rest, " ");
  const auto number = take_number(rest);
  const std::size_t bar = rest.find('|');
  if (!number || bar == std::string_view::npos) return false;
  rest.remove_prefix(bar + 1);
  StepLine step{.step = *number};
  const std::size_t key = rest.find("loss value:");
  if (key != std::string_view::npos)
    set_loss(step, rest.substr(key + std::string_view("loss value:").size()));
  result = {.kind = LineKind::Evaluation, .step = step};
  return true;
}
bool read_evaluation(std::string_view line, std::size_t at, LogLine& result) {
  return starts_text(line, at) &&
         read_evaluated(line.substr(at + std::string_view("validation loss at iteration").size()),
                        result);
}
// " validation-0 loss at iteration 1000 | ...": core_r0.16 with --multiple-validation-sets
bool read_evaluation_of_a_set(std::string_view line, std::size_t at, LogLine& result) {
  std::string_view rest = line.substr(at + std::string_view("validation-").size());
  return starts_text(line, at) && take_number(rest) && take(rest, " loss at iteration") &&
         read_evaluated(rest, result);
}

// The text of a path, up to its end or to one of `ends`.
std::string_view path_until(std::string_view rest, std::initializer_list<std::string_view> ends) {
  std::size_t size = rest.size();
  for (const std::string_view end : ends) size = std::min(size, rest.find(end));
  return trimmed(rest.substr(0, size));
}

bool read_save(std::string_view line, std::size_t at, std::string_view head, LineKind kind,
               LogLine& result) {
  std::string_view rest = line.substr(at + head.size());
  if (!starts_text(line, at)) return false;
  LogLine found{.kind = kind};
  found.local = take(rest, "local ");
  if (!take(rest, "checkpoint at iteration ") && !take(rest, "checkpoint from iteration ") &&
      !take(rest, "checkpoint save at iteration "))
    return false;
  skip(rest, " ");
  const auto number = take_number(rest);
  if (!number) return false;
  found.step.step = *number;
  if (take(rest, " to "))
    found.path = path_until(rest, {" [ t ", " in torch", " in zarr", " in fsdp_dtensor"});
  result = found;
  return true;
}
// core_r0.6 prints "at iteration", later releases "from iteration"; " [ t 1/2, p 1/4 ]" exists from
// core_r0.10 on. In core_r0.6 the line comes before the tracker is written.
bool read_saved(std::string_view line, std::size_t at, LogLine& result) {
  return read_save(line, at, "successfully saved ", LineKind::SaveDone, result);
}
bool read_saving(std::string_view line, std::size_t at, LogLine& result) {
  return read_save(line, at, "saving ", LineKind::SaveStarted, result);
}
bool read_scheduled(std::string_view line, std::size_t at, LogLine& result) {
  return read_save(line, at, "scheduled an async ", LineKind::SaveScheduled, result);
}

bool read_load(std::string_view line, std::size_t at, std::string_view head, LineKind kind,
               LogLine& result) {
  if (!starts_text(line, at)) return false;
  std::string_view rest = line.substr(at + head.size());
  LogLine found{.kind = kind, .path = path_until(rest, {" [ t ", " at iteration "})};
  if (const std::size_t where = rest.rfind(" at iteration "); where != std::string_view::npos) {
    rest.remove_prefix(where + std::string_view(" at iteration ").size());
    skip(rest, " ");
    if (const auto number = take_number(rest)) found.step.step = *number;
  }
  if (found.path.empty()) return false;
  result = found;
  return true;
}
bool read_loading(std::string_view line, std::size_t at, LogLine& result) {
  return read_load(line, at, "loading checkpoint from ", LineKind::LoadStarted, result);
}
bool read_loading_distributed(std::string_view line, std::size_t at, LogLine& result) {
  return read_load(line, at, "loading distributed checkpoint from ", LineKind::LoadStarted, result);
}
bool read_loading_release(std::string_view line, std::size_t at, LogLine& result) {
  return read_load(line, at, "loading release checkpoint from ", LineKind::LoadStarted, result);
}
bool read_loaded(std::string_view line, std::size_t at, LogLine& result) {
  return read_load(line, at, "successfully loaded checkpoint from ", LineKind::Loaded, result);
}

bool read_nothing_to_load(std::string_view, std::size_t, LogLine& result) {
  result = {.kind = LineKind::NothingToLoad};
  return true;
}

// "[after training is done] datetime: 2025-06-18 15:12:02 "
template <LineKind kKind>
bool read_moment(std::string_view line, std::size_t at, LogLine& result) {
  if (line.find("] datetime:", at) == std::string_view::npos) return false;
  result = {.kind = kKind};
  return true;
}

// "[exiting program at iteration 1200] datetime: ...", "[exiting program after receiving SIGTERM.]
// datetime: ...", "... after 230.1 minutes] ..."
bool read_exiting(std::string_view line, std::size_t at, LogLine& result) {
  if (!read_moment<LineKind::Exiting>(line, at, result)) return false;
  std::string_view rest = line.substr(at + std::string_view("[exiting program").size());
  if (take(rest, " at iteration ")) result.step.step = take_number(rest).value_or(-1);
  return true;
}

// "skipping training (--skip-train is on) ...": evaluation follows, and no line marks the end of a
// training.
bool read_skipping(std::string_view line, std::size_t at, LogLine& result) {
  if (!starts_text(line, at)) return false;
  result = {.kind = LineKind::TrainingSkipped};
  return true;
}

constexpr auto kHeads = std::to_array<LineHead>({
    {"iteration", read_step},
    {"validation loss at iteration", read_evaluation},
    {"validation-", read_evaluation_of_a_set},
    {"successfully saved ", read_saved},
    {"saving checkpoint at iteration", read_saving},
    {"saving local checkpoint at iteration", read_saving},
    {"scheduled an async ", read_scheduled},
    {"successfully loaded checkpoint from ", read_loaded},
    {"loading checkpoint from ", read_loading},
    {"loading distributed checkpoint from ", read_loading_distributed},
    {"loading release checkpoint from ", read_loading_release},
    {"could not find the metadata file", read_nothing_to_load},
    {"[after megatron is initialized]", read_moment<LineKind::SetUp>},
    {"[before the start of training step]", read_moment<LineKind::TrainingStarted>},
    {"[after training is done]", read_moment<LineKind::TrainingDone>},
    {"[exiting program", read_exiting},
    {"skipping training (--skip-train is on)", read_skipping},
});

}  // namespace

std::span<const LineHead> megatron_heads() { return kHeads; }

}  // namespace muster::engine
