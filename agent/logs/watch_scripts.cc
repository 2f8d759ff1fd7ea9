// The logs that a node's script writes for its ranks. Scans copy them into the run directory
// (script_log_copy.h), and they are read there like any log. Their content counts for the script,
// which is the node's only rank.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "agent/core/utf8.h"
#include "agent/logs/file_watch.h"
#include "common/rundir/layout.h"

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

}  // namespace

Result<void> FileWatch::follow(const RunKey& key, const ScriptLog& log) {
  const RunPtr run = find(key);
  if (!run || run->ranks.empty()) return {};
  const std::filesystem::path run_dir = run->logs_dir.parent_path();
  const rundir::RunLayout layout(run_dir);
  auto file =
      LogFile::open(layout.node_log(log.name), layout.node_log_cursor(log.name), open_logs_);
  if (!file) return fail(std::move(file.error()));
  auto rank = std::make_unique<WatchedRank>(0, log.name, std::shared_ptr<LogFile>(std::move(*file)),
                                            run->patterns);
  rank->source = std::make_unique<ScriptSource>();
  rank->source->rank = log.rank;
  rank->source->copy = std::make_shared<ScriptLogCopy>(log, run_dir, options_.open_script_log);
  WatchedRank* const one = rank.get();
  {
    const std::scoped_lock lock(mutex_);
    if (!run->auxiliaries.emplace(log.name, std::move(rank)).second) return {};
  }
  inbox_->post([this, run, one] {
    one->source->own = next_owner_++;
    run->logs.insert(run->logs.begin(), one);
    const auto* latest = one->reader.latest();
    const std::scoped_lock lock(mutex_);
    if (latest && !run->progress.any()) run->progress.restore(run->ranks.begin()->first, *latest);
  });
  return {};
}

void FileWatch::copy_script_log(const RunPtr& run, WatchedRank& rank) {
  ScriptSource& source = *rank.source;
  source.due = false;
  source.end_out = source.end_due;
  bool last = false;
  {
    const std::scoped_lock lock(mutex_);
    last = run->swept;
  }
  send(source.scan, source.own,
       [this, inbox = inbox_, weak = std::weak_ptr(run), &rank, copy = source.copy, last] {
         ScriptLogCopy::Round round = copy->copy(last);
         inbox->post([this, weak, &rank, last, round = std::move(round)]() mutable {
           const RunPtr still = weak.lock();
           if (still && owners_.contains(still->owner))
             script_log_copied(still, rank, last, std::move(round));
         });
       });
}

void FileWatch::script_log_copied(const RunPtr& run, WatchedRank& rank, bool last,
                                  ScriptLogCopy::Round round) {
  ScriptSource& source = *rank.source;
  came_back(source.scan, source.own, round.device);
  if (round.trouble) trouble(run, &rank, *round.trouble);
  if (source.over) return;  // given up: its end was reported
  rank.dirty = rank.dirty || round.moved;
  const bool waited_for = std::exchange(source.end_out, false);
  if (round.more) {
    source.due = true;
    return;
  }
  if (waited_for) source.end_due = false;
  if (last && !round.trouble) source_is_over(rank);
  wake_script(*run);
}

// The copy is complete, or will not grow any more.
void FileWatch::source_is_over(WatchedRank& rank) {
  rank.source->over = true;
  rank.dirty = true;
}

// The script's end may have waited for its ranks' logs.
void FileWatch::wake_script(WatchedRun& run) {
  for (const auto& [number, script] : run.ranks) script->dirty = script->dirty || script->end_asked;
}

void FileWatch::check_script_logs(const RunPtr& run, BootTime now) {
  for (WatchedRank* log : run->logs) {
    ScriptSource* const source = log->source.get();
    if (source == nullptr || source->over) continue;
    const bool reported = source->scan.reported;
    check_scan(*run, source->scan, source->own, now, "copying log", source->copy->path());
    if (source->scan.reported && !reported) wake_script(*run);
    if (source->over_by == BootTime{} || now < source->over_by) continue;
    say(
        fmt::format("copying log '{}' of rank {} of job '{}' attempt {}: not to its end within {} "
                    "ms of the sweep; the rest of it is left out",
                    source->copy->path(), source->rank, run->key.first.str(), run->key.second.value,
                    options_.last_scan / std::chrono::milliseconds(1)));
    source_is_over(*log);
  }
}

// Returns true if a log is still being copied, or copied bytes are not read yet. A copy that hangs
// does not count, because nothing waits for it.
bool FileWatch::script_logs_pending(const WatchedRun& run) {
  return std::ranges::any_of(run.logs, [](const WatchedRank* log) {
    const ScriptSource* const source = log->source.get();
    return source != nullptr &&
           (log->dirty || (source->end_due && !source->over && !source->scan.reported));
  });
}

// The steps are those of the script's own log if it has any. Otherwise they are those of the lowest
// rank whose log has steps, as with the reporting rank of a job.
bool FileWatch::speaks(WatchedRun& run, const WatchedRank& rank, bool tells) {
  const std::int64_t place = rank.source ? static_cast<std::int64_t>(rank.source->rank) : -1;
  if (tells && (!run.speaker || place < *run.speaker)) run.speaker = place;
  return run.ranks.size() > 1 || !run.speaker || run.speaker == place;
}

int FileWatch::take_script_logs(const WatchedRun& run, WatchedRank& rank, RankEnd& answer,
                                bool failed, int reported) {
  std::vector<WatchedRank*> logs;
  for (WatchedRank* log : run.logs)
    if (log->source) logs.push_back(log);
  if (logs.empty()) return reported;
  std::ranges::stable_sort(logs, {}, [](const WatchedRank* log) { return log->source->rank; });
  for (const WatchedRank* log : logs) {
    answer.success_seen = answer.success_seen || log->reader.success_seen();
    const engine::StepLine* latest = log->reader.latest();
    if (!latest || answer.step) continue;
    answer.step = latest->step;
    if (latest->total > 0) answer.total = latest->total;
  }
  if (!failed) return reported;
  const auto tail = rank.file->tail(kLastWordWithin);
  const LastWord word = tail ? last_word(*tail) : LastWord();
  struct Found {
    std::uint32_t rank = 0;
    FoundEvidence evidence;
  };
  Found named, best, cause;
  for (WatchedRank* log : logs) {
    auto evidence = log->reader.evidence();
    if (!evidence || evidence->rank == 0) continue;
    const Found found{.rank = log->source->rank, .evidence = std::move(*evidence)};
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
    answer.evidence =
        named.evidence.rank > 0 ? of_rank(named.rank, named.evidence.line) : word.line;
    answer.evidence_kind = named.evidence.kind;
    return std::max(reported, named.evidence.rank);
  }
  if (best.evidence.rank <= reported) return reported;
  answer.evidence = of_rank(best.rank, best.evidence.line);
  answer.evidence_kind = best.evidence.kind;
  return best.evidence.rank;
}

}  // namespace muster::agent
