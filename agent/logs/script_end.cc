#include "agent/logs/script_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/core/utf8.h"

namespace muster::agent {
namespace {

// "muster: the script ended with status 0, and rank 5, which the script had left running, was ended
// by signal 9", or "... rank 5 of the launcher inside ...": the worker's last line in the script's
// log.
struct LastWord {
  std::string line;
  std::optional<std::uint32_t> rank;
};
LastWord last_word(std::string_view tail) {
  constexpr std::string_view kBegin = "muster: ", kScript = "the script ", kRank = ", and rank ",
                             kLeft = ", which the script had left running, ",
                             kInside = " of the launcher inside ";
  const std::size_t at = tail.rfind(std::string(kBegin) + std::string(kScript));
  if (at == std::string_view::npos || (at > 0 && tail[at - 1] != '\n')) return {};
  std::string_view line = tail.substr(at + kBegin.size());
  line = line.substr(0, line.find('\n'));
  const std::size_t name = line.find(kRank);
  if (name == std::string_view::npos) return {};
  std::uint32_t rank = 0;
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data() + name + kRank.size(), end, rank);
  const std::string_view rest(parsed.ptr, end);
  if (parsed.ec != std::errc() || (!rest.starts_with(kLeft) && !rest.starts_with(kInside)))
    return {};
  return {.line = as_utf8(std::string(line)), .rank = rank};
}

constexpr std::size_t kLastWordWithin = 4096;

std::string of_rank(std::uint32_t rank, const std::string& line) {
  std::string text = fmt::format("rank {}: {}", rank, line);
  if (text.size() <= kEvidenceMost) return text;
  std::size_t end = kEvidenceMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end);
}

struct Found {
  std::uint32_t rank = 0;
  FoundEvidence evidence;
};

void take(RankEnding& ending, std::string line, const FoundEvidence& evidence) {
  ending.answer.evidence = std::move(line);
  ending.answer.evidence_kind = evidence.kind;
  ending.quality = std::max(ending.quality, evidence.rank);
}

void explain_failure(const std::vector<ScriptRank>& ranks, RankEnding& ending) {
  const auto tail = ending.log->tail(kLastWordWithin);
  const LastWord word = tail ? last_word(*tail) : LastWord();
  Found named, best, cause;
  for (const ScriptRank& one : ranks) {
    auto evidence = one.reader->evidence();
    if (!evidence || evidence->rank == 0) continue;
    const Found found{.rank = one.rank, .evidence = std::move(*evidence)};
    if (word.rank == found.rank && found.evidence.rank > named.evidence.rank) named = found;
    if (found.evidence.rank > best.evidence.rank) best = found;
    if (found.evidence.kind == v1::EVIDENCE_KIND_CAUSE && found.evidence.rank > cause.evidence.rank)
      cause = found;
  }
  // If the worker named the rank that ended the script, that rank's evidence counts. If it is only
  // a consequence of another rank's end, the best cause counts.
  if (word.rank) {
    if (named.evidence.kind == v1::EVIDENCE_KIND_CONSEQUENCE && cause.evidence.rank > 0)
      named = cause;
    take(ending, named.evidence.rank > 0 ? of_rank(named.rank, named.evidence.line) : word.line,
         named.evidence);
  } else if (best.evidence.rank > ending.quality) {
    take(ending, of_rank(best.rank, best.evidence.line), best.evidence);
  }
}

}  // namespace

void explain_script_end(std::vector<ScriptRank> ranks, RankEnding& ending) {
  if (ranks.empty()) return;
  std::ranges::stable_sort(ranks, {}, &ScriptRank::rank);
  for (const ScriptRank& one : ranks) {
    ending.answer.success_seen = ending.answer.success_seen || one.reader->success_seen();
    const engine::StepLine* latest = one.reader->latest();
    if (latest == nullptr || ending.answer.step) continue;
    ending.answer.step = latest->step;
    if (latest->total > 0) ending.answer.total = latest->total;
  }
  if (ending.failed) explain_failure(ranks, ending);
}

}  // namespace muster::agent
