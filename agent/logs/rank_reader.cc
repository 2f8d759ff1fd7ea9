#include "agent/logs/rank_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/logs/progress.h"
#include "agent/logs/training_end.h"

namespace muster::agent {

Result<std::shared_ptr<const Patterns>> Patterns::make(const v1::Watching& watching) {
  auto patterns = std::make_shared<Patterns>();
  auto grammar = engine::make_grammar(watching);
  if (!grammar) return fail(std::move(grammar.error()));
  patterns->grammar = std::move(*grammar);
  if (!watching.success_regex().empty()) {
    RE2::Options options(RE2::Quiet);
    options.set_encoding(RE2::Options::EncodingLatin1);  // logs have any bytes
    patterns->success = std::make_unique<RE2>(watching.success_regex(), options);
    if (!patterns->success->ok()) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("reading success.regex '{}': {}", watching.success_regex(),
                              patterns->success->error()));
    }
  }
  patterns->success_file = watching.success_file();
  patterns->success_last_step = watching.success_last_step();
  patterns->world_size = watching.world_size();
  patterns->resume_step = watching.resume_step();
  patterns->total_given = watching.grammar() == "custom" &&
                          watching.total().find_first_not_of("0123456789") == std::string::npos;
  return patterns;
}

RankReader::RankReader(std::shared_ptr<LogFile> file, std::shared_ptr<const Patterns> patterns)
    : file_(std::move(file)),
      patterns_(std::move(patterns)),
      guard_(patterns_->resume_step, patterns_->total_given) {
  if (const auto& before = file_->restored()) {
    latest_ = {.step = before->has_step() ? before->step() : -1,
               .total = before->total(),
               .loss = before->loss(),
               .has_loss = before->has_loss()};
    latest_.loss_not_finite = before->loss_not_finite();
    success_seen_ = before->success_seen();
  }
}

void RankReader::examine(std::string_view line, Round& round) {
  const engine::LogLine found = patterns_->grammar->read(line);
  switch (found.kind) {
    case engine::LineKind::Step: take_step(found.step, round); break;
    case engine::LineKind::Rate: take_rate(found.step, round); break;
    case engine::LineKind::EpochEnd: take_end(found.step, round); break;
    case engine::LineKind::LossNotFinite:
      latest_.has_loss = false;
      latest_.loss_not_finite = true;
      round.loss_vanished = true;
      break;
    case engine::LineKind::Exiting:
      if (guard_.is_near(found.step, latest_))
        latest_.step = std::max(latest_.step, found.step.step);
      break;
    case engine::LineKind::Nothing:
    case engine::LineKind::Evaluation:
    case engine::LineKind::SetUp:
    case engine::LineKind::TrainingStarted:
    case engine::LineKind::TrainingDone:
    case engine::LineKind::TrainingSkipped:
    case engine::LineKind::StrategySaved:
    case engine::LineKind::SaveStarted:
    case engine::LineKind::SaveScheduled:
    case engine::LineKind::SaveDone:
    case engine::LineKind::LoadStarted:
    case engine::LineKind::Loaded:
    case engine::LineKind::NothingToLoad: break;
  }
  if (patterns_->success_last_step) {
    if (const auto end = end_reached(found, latest_, last_line_.covers)) success_seen_ = *end;
  }
  if (!success_seen_ && patterns_->success &&
      RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *patterns_->success))
    success_seen_ = true;
}

void RankReader::take_step(const engine::StepLine& step, Round& round) {
  switch (guard_.judge(step, latest_)) {
    case StepGuard::Verdict::Not: return;
    case StepGuard::Verdict::Both: count_step(guard_.take_pending(), round); break;
    case StepGuard::Verdict::Counts: break;
  }
  count_step(step, round);
}

void RankReader::count_step(engine::StepLine step, Round& round) {
  if (step.covers == 0 && latest_.step >= 0 && step.step > latest_.step)
    step.covers = step.step - latest_.step;
  if (step.step < end_step_) end_step_ = -1;  // the training counts from an earlier step again
  merge(latest_, step);
  last_line_ = step;
  round.steps.push_back(step);
}

// "8.54 samples/s/p" is the rate of one device, and a job has as many devices as ranks. A single
// rank may be a launcher of many.
void RankReader::take_rate(const engine::StepLine& rate, Round& round) {
  const double of_devices =
      patterns_->world_size < 2 ? 0 : rate.device_samples_per_second * patterns_->world_size;
  const double samples = rate.samples_per_second > 0 ? rate.samples_per_second : of_devices;
  if (last_line_.step < 0 || samples <= 0) return;
  last_line_.samples_per_second = samples;
  round.steps.push_back(last_line_);
}

// The line does not contain its step. It is assumed to be `covers` steps after the previous end, or
// at the last line's step. So it is never beyond the trained steps. If lines were missed, the step
// is too low until the next step line.
void RankReader::take_end(const engine::StepLine& end, Round& round) {
  if (latest_.step < 0) return;  // unknown: a resumed training does not begin at 1
  std::int64_t step = latest_.step;
  std::int64_t at = 0;
  if (end_step_ >= 0) {
    if (!__builtin_add_overflow(end_step_, end.covers, &at)) step = std::max(step, at);
  } else if (last_line_.step >= 0 && last_line_.epoch > 0 &&
             last_line_.steps_per_epoch == end.covers) {
    // a complete epoch
    if (!__builtin_mul_overflow(last_line_.epoch, end.covers, &at)) step = std::max(step, at);
  }
  if (latest_.total > 0) step = std::min(step, std::max(latest_.total, latest_.step));
  end_step_ = step;
  engine::StepLine line =
      last_line_.step == step ? last_line_ : engine::StepLine{.step = step, .total = latest_.total};
  if (line.covers == 0) line.covers = step > latest_.step ? step - latest_.step : end.covers;
  line.seconds = end.seconds;
  if (!line.has_loss && !engine::nan_sign(line)) {
    line.loss = end.loss;
    line.has_loss = end.has_loss;
    line.loss_not_finite = end.loss_not_finite;
  }
  merge(latest_, line);
  last_line_ = line;
  round.steps.push_back(line);
}

RankReader::Round RankReader::read(std::span<char> buffer, const std::function<void()>& moved) {
  Round round;
  int files = 0;
  for (std::uint64_t bytes = 0; bytes < kRoundBytes && files < kRoundFiles;) {
    auto piece = file_->parse_next(buffer);
    if (!piece) {
      round.trouble = std::move(piece.error());
      break;
    }
    if (piece->trouble) round.trouble = std::move(piece->trouble);
    if (piece->replaced) ++files;
    if (piece->cut) {
      lines_.reset();
      last_line_ = {};
    } else if (piece->new_file) {
      finish_line(round);  // the file before ended without a line end
    }
    lines_.feed(piece->data, [&](std::string_view line) { examine(line, round); });
    bytes += piece->data.size();
    unremembered_ += piece->data.size();
    if (!piece->data.empty() || piece->cut || piece->new_file) moved();
    if (piece->at_end) {
      round.at_end = true;
      break;
    }
  }
  return round;
}

void RankReader::finish_line(Round& round) {
  lines_.finish([&](std::string_view line) { examine(line, round); });
}

Result<void> RankReader::remember(BootTime now, bool final) {
  if (remembered_at_ == BootTime{}) remembered_at_ = now;
  if (unremembered_ == 0) return {};
  if (!final && unremembered_ < kRememberBytes && now - remembered_at_ < std::chrono::seconds(30))
    return {};
  logs::v1::Parsed parsed;
  if (latest_.step >= 0) parsed.set_step(latest_.step);
  parsed.set_total(latest_.total);
  if (latest_.has_loss) parsed.set_loss(latest_.loss);
  parsed.set_loss_not_finite(latest_.loss_not_finite);
  parsed.set_success_seen(success_seen_);
  unremembered_ = 0;
  remembered_at_ = now;
  return file_->remember(std::move(parsed), lines_.buffered_bytes());
}

Result<FoundEvidence> RankReader::evidence() {
  auto tail = file_->tail(kEvidenceTail);
  if (!tail) return fail(std::move(tail.error()));
  return find_evidence(*tail, patterns_->grammar.get());
}

}  // namespace muster::agent
