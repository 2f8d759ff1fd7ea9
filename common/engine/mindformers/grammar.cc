// MindFormers: MFLossMonitor, CheckpointMonitor (mindformers/core/callback/callback.py) and the
// trainer's own messages, r0.3 to master. The logger's prefix differs between releases and is not
// read.
//
// A step line names the epoch and the step in the epoch. The step of the whole training is the
// length of an epoch times the number of earlier epochs, plus that step. This is also true in sink
// mode: there the callback runs once for each sink and prints its last step, in epochs of the data
// set.
#include <array>
#include <cmath>

#include "common/engine/files/line_fields.h"
#include "common/engine/mindformers/mindformers.h"
#include "common/engine/model/grammar_rows.h"

namespace muster::engine {
namespace {

// "412.318 ms", "1873ms" -> seconds.
double milliseconds(std::string_view text) {
  const auto found = leading_finite(text);
  return found && *found > 0 ? *found / 1000 : 0;
}

void read_field(std::string_view key, std::string_view value, StepLine& step) {
  if (key == "loss") {
    set_loss(step, value);  // "9.844" in sink mode, "[cur/avg]" without
  } else if (key == "per_step_time") {
    step.seconds = milliseconds(value);
  } else if (key == "time") {
    step.span_seconds = milliseconds(value);
  } else if (key == "lr") {
    if (const auto found = leading_finite(value)) {
      step.learning_rate = *found;
      step.has_learning_rate = true;
    }
  } else if (key == "overflow cond") {
    step.overflow = trimmed(value) == "True";
  } else if (key == "loss_scale") {
    step.loss_scale = leading_finite(value).value_or(0);  // or "unavailable"
  } else if (key == "global_norm") {
    if (const auto found = leading_finite(value)) {
      step.gradient_norm = *found;
      step.has_gradient_norm = true;
    }
  } else if (key == "train_throughput_per_npu") {
    step.device_tflops = leading_finite(value).value_or(0);
  }
}

// "Epoch:[ 1/ 3], step:[ 20/ 1875], loss:[10.621/10.638], time:412.318 ms, lr:2.6e-07, overflow
// cond: False, loss_scale: 65536.0" r0.3 to r0.6
// "{ Epoch:[ 1/ 2], step:[ 40/ 3200], loss: 9.844, per_step_time: 1873ms, lr: 9.375e-07, overflow
// cond: False, loss_scale: 65536.0" r0.8 to r1.2
// "..., global_norm: [0.7341], train_throughput_per_npu: 171.176T" r1.3, r1.5
// "..., loss: 2.313456, lm_loss: 2.30, load_balancing_loss: 0.01, mtp_loss: 0.02, per_step_time:
// ..." r1.8, master
bool read_step(std::string_view line, std::size_t at, LogLine& result) {
  if (at > 0 && is_word(line[at - 1])) return false;
  std::string_view rest = line.substr(at + std::string_view("Epoch:[").size());
  const auto epochs = take_fraction(rest);
  if (!epochs || !take(rest, "]")) return false;
  skip(rest, ", ");
  if (!take(rest, "step:[")) return false;
  const auto steps = take_fraction(rest);
  if (!steps || !take(rest, "]")) return false;
  StepLine step{.epoch = epochs->part,
                .epochs = epochs->whole,
                .step_in_epoch = steps->part,
                .steps_per_epoch = steps->whole};
  if (__builtin_mul_overflow(std::max<std::int64_t>(step.epoch - 1, 0), step.steps_per_epoch,
                             &step.step))
    return false;
  if (__builtin_add_overflow(step.step, step.step_in_epoch, &step.step)) return false;
  if (__builtin_mul_overflow(step.epochs, step.steps_per_epoch, &step.total)) step.total = 0;
  while (take(rest, ",")) {
    std::size_t end = 0;
    for (bool inside = false; end < rest.size() && (inside || rest[end] != ','); ++end)
      inside = rest[end] == '[' || (inside && rest[end] != ']');
    const std::string_view field = rest.substr(0, end);
    rest.remove_prefix(end);
    const std::size_t colon = field.find(':');
    if (colon != std::string_view::npos)
      read_field(trimmed(field.substr(0, colon)), field.substr(colon + 1), step);
  }
  result = {.kind = LineKind::Step, .step = step};
  return true;
}

// Parses what python prints for a timedelta of whole seconds: "3:18:43", "1 day, 2:07:47", "25
// days, 2:07:47".
std::optional<double> take_duration(std::string_view& text) {
  const auto first = take_number(text);
  if (!first) return std::nullopt;
  double days = 0;
  std::int64_t hours = *first;
  if (take(text, " day")) {
    days = static_cast<double>(*first);
    take(text, "s");
    if (!take(text, ", ")) return std::nullopt;
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    hours = *number;
  }
  std::int64_t parts[2] = {0, 0};
  for (std::int64_t& part : parts) {
    if (!take(text, ":")) return std::nullopt;
    const auto number = take_number(text);
    if (!number || *number > 59) return std::nullopt;
    part = *number;
  }
  return days * 86400 + static_cast<double>(hours) * 3600 +
         static_cast<double>(parts[0] * 60 + parts[1]);
}

// "   0.6% |                        | 8.54 samples/s/p  3:18:43 }": the second line of a step from
// r0.8 on; "p" is a device.
bool read_rate(std::string_view line, std::size_t at, LogLine& result) {
  std::string_view rest = line.substr(at + std::string_view("samples/s/p").size());
  skip(rest, " ");
  const auto remaining = take_duration(rest);
  if (!remaining) return false;
  std::string_view before = line.substr(0, at);
  while (before.ends_with(' ')) before.remove_suffix(1);
  const std::size_t number = before.find_last_not_of("0123456789.");
  if (number == std::string_view::npos || before[number] != ' ') return false;
  const auto rate = leading_finite(before.substr(number + 1));
  if (!rate) return false;
  result = {.kind = LineKind::Rate,
            .step = {.device_samples_per_second = *rate, .remaining_seconds = *remaining}};
  return true;
}

// "Epoch time: 533756.177 ms, per step time: 133439.044 ms, avg loss: 2.244" (r0.3), "Per sink_size
// step time: ..." (r0.6)
bool read_epoch_end(std::string_view line, std::size_t at, LogLine& result) {
  const std::string_view before = line.substr(0, at);
  const std::size_t all = before.rfind("time: ");
  if (all == std::string_view::npos) return false;
  const double span = milliseconds(before.substr(all + 6));
  const double each = milliseconds(line.substr(at + std::string_view("per step time:").size()));
  if (span <= 0 || each <= 0 || span / each > 1e12) return false;
  StepLine step{.seconds = each, .covers = std::llround(span / each), .span_seconds = span};
  if (const std::size_t loss = line.find("avg loss:", at); loss != std::string_view::npos)
    set_loss(step, line.substr(loss + std::string_view("avg loss:").size()));
  result = {.kind = LineKind::EpochEnd, .step = step};
  return true;
}

// "Finish saving ckpt of epoch 1 step 1000 using 12.345 seconds". With "network" or
// "trainable_params" instead of "ckpt" the file is only weights and no checkpoint.
bool read_finished(std::string_view line, std::size_t at, LogLine& result) {
  std::string_view rest = line.substr(at + std::string_view("Finish saving ckpt of epoch ").size());
  const auto epoch = take_number(rest);
  if (!epoch || !take(rest, " step ")) return false;
  const auto number = take_number(rest);
  if (!number) return false;
  result = {.kind = LineKind::SaveDone, .step = {.epoch = *epoch, .step_in_epoch = *number}};
  return true;
}

// "successfully sync saved checkpoint from step '40' to '/out/checkpoint'."; the first releases
// print it without quotes. The text comes after "sync" or "async".
bool read_saved(std::string_view line, std::size_t at, LogLine& result) {
  std::string_view rest =
      line.substr(at + std::string_view("sync saved checkpoint from step ").size());
  const bool quoted = take(rest, "'");
  const auto number = take_number(rest);
  if (!number || !take(rest, quoted ? "' to " : " to ")) return false;
  std::string_view path = trimmed(rest);
  if (quoted && take(path, "'")) path = path.substr(0, path.rfind('\''));
  result = {.kind = LineKind::SaveDone, .step = {.step = *number}, .path = path};
  return true;
}

bool read_resume(std::string_view line, std::size_t at, LogLine& result) {
  const std::string_view path =
      trimmed(line.substr(at + std::string_view("Get resume checkpoint: ").size()));
  if (path.empty()) return false;
  result = {.kind = LineKind::LoadStarted, .path = path};
  return true;
}

// Evaluation during training: EvalCallBack's "Eval result: {'PerplexityMetric': {'loss': 2.5,
// 'PPL': 12.1}}, eval time is 12.300000 s." (r0.6 and later), which names no step, and MindSpore's
// Model.fit: "Eval result: epoch 3, metrics: {'PerplexityMetric': {'loss': 2.5, 'PPL': 12.1}}"
bool read_evaluation(std::string_view line, std::size_t at, LogLine& result) {
  std::string_view rest = line.substr(at + std::string_view("Eval result: ").size());
  StepLine step;
  if (take(rest, "epoch")) {
    skip(rest, " :");
    const auto epoch = take_number(rest);
    if (!epoch || !take(rest, ", metrics: ")) return false;
    step.epoch = *epoch;
  } else if (rest.find(", eval time is ") == std::string_view::npos) {
    return false;
  }
  if (const std::size_t loss = rest.find("loss': "); loss != std::string_view::npos)
    set_loss(step, rest.substr(loss + 7));
  result = {.kind = LineKind::Evaluation, .step = step};
  return true;
}

// "The current value of loss is NaN, terminate training." (also Inf; r0.8), "Invalid loss,
// terminate training." (r0.3)
bool read_terminate(std::string_view line, std::size_t at, LogLine& result) {
  const std::string_view before = line.substr(0, at);
  if (!before.ends_with("loss is NaN, ") && !before.ends_with("loss is Inf, ") &&
      !before.ends_with("Invalid loss, "))
    return false;
  result = {.kind = LineKind::LossNotFinite};
  return true;
}

template <LineKind kKind>
bool read_word(std::string_view, std::size_t, LogLine& result) {
  result = {.kind = kKind};
  return true;
}

constexpr auto kHeads = std::to_array<LineHead>({
    {"Epoch:[", read_step},
    {"samples/s/p", read_rate},
    {"per step time:", read_epoch_end},
    {"Finish saving ckpt of epoch ", read_finished},
    {"sync saved checkpoint from step ", read_saved},
    {"......Saving ckpt......", read_word<LineKind::SaveStarted>},
    {"Start to save checkpoint as new format", read_word<LineKind::SaveStarted>},
    {"Get resume checkpoint: ", read_resume},
    {"..Start Load Checkpoint..", read_word<LineKind::LoadStarted>},
    {"..Loading Checkpoint Finished..", read_word<LineKind::Loaded>},
    {".Starting Training Model.", read_word<LineKind::TrainingStarted>},
    {".Training Over!.", read_word<LineKind::TrainingDone>},
    {"Only_save_strategy is True, model.compile() finished", read_word<LineKind::StrategySaved>},
    {"Eval result: ", read_evaluation},
    {"terminate training.", read_terminate},
});

}  // namespace

std::span<const LineHead> mindformers_heads() { return kHeads; }

}  // namespace muster::engine
