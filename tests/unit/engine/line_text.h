// What a grammar and the evidence find in a line, as text: for golden files, and to compare
// different cuts of the same bytes. Pure.
#pragma once

#include <fmt/format.h>

#include <string>

#include "common/engine/evidence.h"
#include "common/engine/model/grammar.h"

namespace muster::engine {

inline const char* kind_text(LineKind kind) {
  switch (kind) {
    case LineKind::Nothing: return "-";
    case LineKind::Step: return "step";
    case LineKind::Rate: return "rate";
    case LineKind::EpochEnd: return "epoch-end";
    case LineKind::Evaluation: return "evaluation";
    case LineKind::LossNotFinite: return "loss-not-finite";
    case LineKind::SetUp: return "set-up";
    case LineKind::TrainingStarted: return "training-started";
    case LineKind::TrainingDone: return "training-done";
    case LineKind::TrainingSkipped: return "training-skipped";
    case LineKind::Exiting: return "exiting";
    case LineKind::StrategySaved: return "strategy-saved";
    case LineKind::SaveStarted: return "save-started";
    case LineKind::SaveScheduled: return "save-scheduled";
    case LineKind::SaveDone: return "save-done";
    case LineKind::LoadStarted: return "load-started";
    case LineKind::Loaded: return "loaded";
    case LineKind::NothingToLoad: return "nothing-to-load";
  }
  return "?";
}

// Only what the line contains: no zeros.
inline std::string line_text(const LogLine& line) {
  std::string text = kind_text(line.kind);
  const StepLine& step = line.step;
  const auto whole = [&](const char* name, std::int64_t value, std::int64_t none = 0) {
    if (value != none) text += fmt::format(" {}={}", name, value);
  };
  const auto real = [&](const char* name, double value, bool there) {
    if (there) text += fmt::format(" {}={:.9g}", name, value);
  };
  whole("step", step.step, -1);
  whole("total", step.total);
  whole("epoch", step.epoch);
  whole("epochs", step.epochs);
  whole("step_in_epoch", step.step_in_epoch);
  whole("steps_per_epoch", step.steps_per_epoch);
  whole("covers", step.covers);
  real("loss", step.loss, step.has_loss);
  if (step.loss_not_finite) text += " loss_not_finite";
  real("seconds", step.seconds, step.seconds != 0);
  real("span_seconds", step.span_seconds, step.span_seconds != 0);
  real("learning_rate", step.learning_rate, step.has_learning_rate);
  real("loss_scale", step.loss_scale, step.loss_scale != 0);
  real("gradient_norm", step.gradient_norm, step.has_gradient_norm);
  if (step.overflow) text += " overflow";
  whole("samples", step.samples);
  whole("batch", step.batch);
  real("samples_per_second", step.samples_per_second, step.samples_per_second != 0);
  real("tokens_per_second", step.tokens_per_second, step.tokens_per_second != 0);
  real("device_samples_per_second", step.device_samples_per_second,
       step.device_samples_per_second != 0);
  real("device_tflops", step.device_tflops, step.device_tflops != 0);
  real("remaining_seconds", step.remaining_seconds, line.kind == LineKind::Rate);
  whole("skipped", step.skipped);
  whole("not_finite", step.not_finite);
  if (nan_sign(step)) text += " nan_sign";
  if (line.local) text += " local";
  if (!line.path.empty()) text += fmt::format(" path={}", line.path);
  return text;
}

inline std::string evidence_text(const Evidence& evidence) {
  return fmt::format("{} {}{}{}", evidence.rank, trouble_name(evidence.trouble),
                     evidence.code.empty() ? "" : " ", evidence.code);
}

}  // namespace muster::engine
