#include "agent/logs/script_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/logs/script_end.h"
#include "agent/logs/watch_thread.h"

namespace muster::agent {
namespace {

using State = LogTail::Copy::State;

}  // namespace

ScriptLogs::Source::~Source() {
  scan.send_last([last_copy = std::move(copy)] {});
}

void ScriptLogs::follow(std::unique_ptr<LogTail> tail, std::shared_ptr<ScriptLogCopy> copy) {
  LogTail& log = tails_.add(std::move(tail));
  sources_.push_back(std::make_unique<Source>(tools_.scans, log, std::move(copy)));
  sources_.back()->scan.set_due();
  const LogTail* const script = tails_.first_rank();
  if (script == nullptr) return;
  if (const auto* latest = log.reader.latest()) run_->restore_first(script->name.rank, *latest);
}

void ScriptLogs::start(Source& source) {
  if (source.state() == State::EndDue) source.state() = State::EndUnderWay;
  source.scan.send([inbox = tools_.inbox, weak = weak_from_this(), lane = source.scan.lane(),
                    &source, copy = source.copy, last = swept_] {
    ScriptLogCopy::Round round = copy->copy(last);
    inbox->post([weak, lane, &source, last, round = std::move(round)](WatchThread* thread) mutable {
      if (const auto still = weak.lock()) return still->take(source, last, std::move(round));
      thread->tools().scans.answered(lane);
    });
  });
}

void ScriptLogs::take(Source& source, bool last, ScriptLogCopy::Round round) {
  source.scan.returned(round.device);
  if (round.trouble) tails_.trouble(source.tail, *round.trouble);
  if (source.complete()) return;  // given up: its end was reported
  source.tail.unread = source.tail.unread || round.moved;
  if (round.more) {
    source.scan.set_due();
    if (source.state() == State::EndUnderWay) source.state() = State::EndDue;
    return;
  }
  if (source.state() == State::EndUnderWay) source.state() = State::Follows;
  if (last && !round.trouble) complete(source);
  tails_.wake_endings();
}

void ScriptLogs::complete(Source& source) {
  source.state() = State::Complete;
  source.tail.unread = true;
}

bool ScriptLogs::pass(BootTime now) {
  bool more = false;
  if (now >= next_copies()) poll({.wall = {}, .boot = now});
  for (const auto& source : sources_) {
    if (source->complete()) continue;
    if (source->scan.take()) start(*source);
    const bool hung = source->scan.hangs();
    source->scan.check(now, "copying log", source->copy->path(), run_->key);
    if (source->scan.hangs() && !hung) {
      tails_.wake_endings();
      more = true;
    }
    if (now < source->given_up_at) continue;
    tools_.reports.trouble(fmt::format(
        "copying log '{}' of rank {} of job '{}' attempt {}: not to its end within {} ms of the "
        "sweep; the rest of it is left out",
        source->copy->path(), source->tail.copy->rank, run_->key.first.str(),
        run_->key.second.value, tools_.options.last_scan / std::chrono::milliseconds(1)));
    complete(*source);
    more = true;
  }
  return more;
}

BootTime ScriptLogs::next_copies() const {
  if (tails_.watched() ||
      std::ranges::all_of(sources_, [](const auto& source) { return source->complete(); }))
    return BootTime::max();
  return copied_at_ + tools_.options.unnotified_scan;
}

BootTime ScriptLogs::next_due() const {
  BootTime due = next_copies();
  for (const auto& source : sources_)
    if (!source->complete()) due = std::min({due, source->scan.next_check(), source->given_up_at});
  return due;
}

void ScriptLogs::poll(const Now& now) {
  copied_at_ = now.boot;
  for (const auto& source : sources_)
    if (!source->complete()) source->scan.set_due();
}

void ScriptLogs::ended(RankNo, bool) {
  for (const auto& source : sources_) {
    if (source->complete()) continue;
    source->state() = State::EndDue;
    source->scan.set_due();
  }
}

void ScriptLogs::swept(BootTime now) {
  swept_ = true;
  for (const auto& source : sources_) {
    if (source->complete()) continue;
    source->scan.set_due();
    source->given_up_at = std::min(source->given_up_at, now + tools_.options.last_scan);
  }
}

// A copy that hangs does not count.
bool ScriptLogs::end_waits() const {
  return std::ranges::any_of(sources_, [](const auto& source) {
    return source->tail.unread || (source->tail.copy->end_waits() && !source->scan.hangs());
  });
}

bool ScriptLogs::explain(RankEnding& ending) {
  std::vector<ScriptRank> ranks;
  for (const auto& source : sources_)
    ranks.push_back({.rank = source->tail.copy->rank, .reader = &source->tail.reader});
  explain_script_end(std::move(ranks), ending);
  return true;
}

}  // namespace muster::agent
