#include "agent/watch/rank_reader.h"

#include <fmt/format.h>

#include "agent/watch/evidence.h"

namespace muster::agent {

Result<std::shared_ptr<const Patterns>> Patterns::make(const v1::Watching& watching) {
  auto patterns = std::make_shared<Patterns>();
  auto grammar = engine::make_grammar(watching);
  if (!grammar) return fail(std::move(grammar.error()));
  patterns->grammar = std::move(*grammar);
  if (!watching.success_regex().empty()) {
    RE2::Options options(RE2::Quiet);
    options.set_encoding(RE2::Options::EncodingLatin1);  // logs hold any bytes
    patterns->success = std::make_unique<RE2>(watching.success_regex(), options);
    if (!patterns->success->ok()) {
      return fail(ErrorCode::InvalidArgument, fmt::format("reading success.regex '{}': {}", watching.success_regex(), patterns->success->error()));
    }
  }
  patterns->success_file = watching.success_file();
  return patterns;
}

RankReader::RankReader(std::shared_ptr<LogFile> file, std::shared_ptr<const Patterns> patterns) : file_(std::move(file)), patterns_(std::move(patterns)) {
  if (const auto& before = file_->restored()) {
    latest_ = {before->step(), before->total(), before->loss(), before->has_loss(), 0};
    success_seen_ = before->success_seen();
  }
}

void RankReader::look_at(std::string_view line, Round& round) {
  if (const auto step = patterns_->grammar->step(line)) {
    latest_.step = step->step;
    if (step->total > 0) latest_.total = step->total;
    if (step->has_loss) {
      latest_.loss = step->loss;
      latest_.has_loss = true;
    }
    round.steps.push_back(*step);
  }
  if (!success_seen_ && patterns_->success && RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *patterns_->success)) success_seen_ = true;
}

Result<RankReader::Round> RankReader::read(std::span<char> buffer, const std::function<void()>& moved) {
  Round round;
  for (std::uint64_t bytes = 0; bytes < kRoundBytes;) {
    auto piece = file_->parse_next(buffer);
    if (!piece) return fail(std::move(piece.error()));
    if (piece->cut) lines_.reset();
    lines_.feed(piece->data, [&](std::string_view line) { look_at(line, round); });
    bytes += piece->data.size();
    unremembered_ += piece->data.size();
    if (!piece->data.empty() || piece->cut) moved();
    if (piece->at_end) {
      round.at_end = true;
      break;
    }
  }
  return round;
}

void RankReader::finish_line(Round& round) {
  lines_.finish([&](std::string_view line) { look_at(line, round); });
}

Result<void> RankReader::remember(BootTime now, bool final) {
  if (remembered_at_ == BootTime{}) remembered_at_ = now;
  if (unremembered_ == 0) return {};
  if (!final && unremembered_ < kRememberBytes && now - remembered_at_ < std::chrono::seconds(30)) return {};
  logs::v1::Parsed said;
  said.set_step(latest_.step);
  said.set_total(latest_.total);
  said.set_loss(latest_.loss);
  said.set_has_loss(latest_.has_loss);
  said.set_success_seen(success_seen_);
  unremembered_ = 0;
  remembered_at_ = now;
  return file_->remember(std::move(said), lines_.held_bytes());
}

Result<std::string> RankReader::evidence() {
  auto tail = file_->tail(kEvidenceTail);
  if (!tail) return fail(std::move(tail.error()));
  return best_evidence(*tail);
}

}  // namespace muster::agent
