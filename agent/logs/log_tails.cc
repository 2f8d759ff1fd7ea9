#include "agent/logs/log_tails.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/logs/logs_dir.h"

namespace muster::agent {

LogTails::LogTails(WatchTools& tools, std::shared_ptr<PublishedRun> run, RankEndings& endings,
                   std::filesystem::path dir, std::vector<std::unique_ptr<LogTail>> tails)
    : tools_(tools),
      run_(std::move(run)),
      endings_(endings),
      dir_(std::move(dir)),
      listener_(tools_.changed_files, *this),
      tails_(std::move(tails)) {
  for (const auto& tail : tails_) {
    by_file_[tail->path.filename().string()] = tail.get();
    if (tail->name.auxiliary.empty()) ++ranks_;
  }
  watch_dir();
}

LogTail& LogTails::add(std::unique_ptr<LogTail> tail) {
  LogTail& added = **tails_.insert(tails_.begin(), std::move(tail));
  by_file_[added.path.filename().string()] = &added;
  return added;
}

void LogTails::watch_dir() {
  watched_ =
      !is_replaced(dir_) && tools_.changed_files.watch_writes(dir_.string(), listener_.owner());
}

LogTail* LogTails::first_rank() const {
  const auto rank =
      std::ranges::find_if(tails_, [](const auto& tail) { return tail->name.auxiliary.empty(); });
  return rank == tails_.end() ? nullptr : rank->get();
}

std::vector<std::shared_ptr<LogFile>> LogTails::files() const {
  std::vector<std::shared_ptr<LogFile>> files;
  for (const auto& tail : tails_) files.push_back(tail->file);
  return files;
}

void LogTails::trouble(LogTail& tail, const Error& error) {
  if (tail.trouble.first()) tools_.reports.trouble(*run_, error);
}

// --- what may have changed -----------------------------------------------------------------------

void LogTails::changed(std::string_view name) {
  if (name.empty()) {
    watched_ = false;
    for (const auto& tail : tails_) tail->unread = true;
    return;
  }
  // "rank-0.log.1", "rank-0.log-20261126": the log was renamed, and may still be written.
  constexpr std::string_view kLog = ".log";
  const std::size_t end = name.find(kLog);
  if (end != std::string_view::npos) name = name.substr(0, end + kLog.size());
  const auto tail = by_file_.find(name);
  if (tail != by_file_.end()) tail->second->unread = true;
}

void LogTails::poll(const Now& now) {
  polled_at_ = now.boot;
  if (!watched_) watch_dir();
  if (is_replaced(dir_) && replaced_.first())
    tools_.reports.trouble(fmt::format(
        "reading the logs of job '{}' attempt {}: '{}' is no directory any more, and no link is "
        "followed; only what is in the directory that was open before is read",
        run_->key.first.str(), run_->key.second.value, dir_.string()));
  for (const auto& tail : tails_) tail->unread = tail->unread || !tail->final;
}

BootTime LogTails::next_due() const {
  if (watched_ || std::ranges::all_of(tails_, [](const auto& tail) { return tail->final; }))
    return BootTime::max();
  return polled_at_ + tools_.options.unnotified_scan;
}

void LogTails::ended(RankNo rank, bool failed) {
  for (const auto& tail : tails_) {
    if (!tail->name.auxiliary.empty() || tail->name.rank != rank) continue;
    tail->process = LogTail::Process::Ended;
    tail->failed = failed;
    tail->unread = true;
  }
}

void LogTails::swept(BootTime) {
  for (const auto& tail : tails_) tail->unread = true;
  swept_ = true;
}

void LogTails::wake_endings() {
  for (const auto& tail : tails_)
    tail->unread = tail->unread || tail->process == LogTail::Process::Ended;
}

// --- reading -------------------------------------------------------------------------------------

bool LogTails::pass(BootTime now) {
  if (now >= next_due()) poll({.wall = {}, .boot = now});
  bool more = false;
  for (const bool waited_for : {true, false}) {
    for (const auto& tail : tails_) {
      const bool waits = tail->process == LogTail::Process::Ended;
      if (tail->unread && waits == waited_for) more = read(*tail, now) || more;
    }
  }
  return more;
}

void LogTails::publish(const LogTail& tail) {
  run_->set_extent(tail.name, tail.file->extent());
  tools_.reports.bytes_moved();
}

bool LogTails::read(LogTail& tail, BootTime now) {
  // Known before the read: bytes that are read to the end after it are final.
  const bool no_writer =
      swept_ && (!tail.copy || tail.copy->state == LogTail::Copy::State::Complete);
  if (no_writer) tail.file->writers_gone();
  RankReader::Round round = tail.reader.read(tools_.buffer, [&] { publish(tail); });
  if (round.trouble) trouble(tail, *round.trouble);
  const bool at_end = round.at_end;
  const bool unreadable = round.trouble && !at_end;
  const LogTail* const script = tail.copy ? first_rank() : nullptr;
  const bool script_ended =
      script != nullptr && !tail.copy->end_waits() && script->process == LogTail::Process::Ended;
  const bool end_seen =
      at_end && (tail.process == LogTail::Process::Ended || script_ended || no_writer);
  if (end_seen) tail.reader.finish_line(round);
  take_steps(tail, std::move(round), now);
  if (auto kept = tail.reader.remember(now, end_seen); !kept) trouble(tail, kept.error());
  if (!at_end && !unreadable) return true;
  tail.unread = false;
  if (unreadable) return wake_script(tail);  // the next poll tries again
  if (tail.process == LogTail::Process::Ended && !endings_.wait()) {
    tail.process = LogTail::Process::Answered;
    answer(tail);
  }
  if (no_writer) {
    tail.final = true;
    run_->set_ended(tail.name);
    publish(tail);
  }
  return wake_script(tail);
}

bool LogTails::wake_script(const LogTail& tail) {
  const LogTail* const script = tail.copy ? first_rank() : nullptr;
  if (script == nullptr) return false;
  wake_endings();
  return script->unread;
}

void LogTails::take_steps(const LogTail& tail, RankReader::Round round, BootTime now) {
  if (!tail.name.auxiliary.empty() && !tail.copy) return;
  if (round.steps.empty() && !round.loss_vanished && first_step_.reported()) return;
  const RankNo rank = tail.copy ? first_rank()->name.rank : tail.name.rank;
  const bool counted = counts(tail, !round.steps.empty());
  const WallTime at = system_clock().now().wall;
  // An earlier incarnation of the agent may have read these bytes. Their age is at least that of
  // the log's last byte.
  const Duration behind = run_->stepped() ? Duration::zero() : tail.file->since_written(at);
  const auto first = run_->take_steps({.rank = rank,
                                       .steps = std::move(round.steps),
                                       .loss_vanished = round.loss_vanished,
                                       .count = counted,
                                       .behind = behind},
                                      {.wall = at, .boot = now});
  if (first && first_step_.first()) tools_.reports.first_step(*run_, *first);
}

// The steps are those of the script's own log if it has any. Otherwise they are those of the lowest
// rank whose log has steps, as with the reporting rank of a job.
bool LogTails::counts(const LogTail& tail, bool has_steps) {
  const std::int64_t place = tail.copy ? static_cast<std::int64_t>(tail.copy->rank) : -1;
  if (has_steps && (!reporting_ || place < *reporting_)) reporting_ = place;
  return ranks_ > 1 || !reporting_ || reporting_ == place;
}

void LogTails::answer(LogTail& tail) {
  RankEnding ending{.rank = tail.name.rank,
                    .failed = tail.failed,
                    .answer = {.evidence = {}, .success_seen = tail.reader.success_seen()},
                    .log = tail.file};
  if (const engine::StepLine* latest = tail.reader.latest()) {
    ending.answer.step = latest->step;
    if (latest->total > 0) ending.answer.total = latest->total;
  }
  if (auto evidence = tail.reader.evidence()) {
    ending.answer.evidence = std::move(evidence->line);
    ending.answer.evidence_kind = evidence->kind;
    ending.quality = evidence->rank;
  } else {
    trouble(tail, evidence.error());
  }
  endings_.explain(std::move(ending));
}

}  // namespace muster::agent
