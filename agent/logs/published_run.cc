#include "agent/logs/published_run.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/proto/proto_time.h"

namespace muster::agent {

bool PublishedRun::add(const LogName& name, Kind kind, std::shared_ptr<LogFile> file) {
  const MutexLock lock(mutex_);
  return logs_.try_emplace(name, Log{.kind = kind, .file = std::move(file), .extent = {}}).second;
}

void PublishedRun::restore(RankNo rank, const engine::StepLine& latest) {
  const MutexLock lock(mutex_);
  progress_.restore(rank.value, latest);
}

void PublishedRun::restore_first(RankNo rank, const engine::StepLine& latest) {
  const MutexLock lock(mutex_);
  if (!progress_.any()) progress_.restore(rank.value, latest);
}

void PublishedRun::remove() {
  const MutexLock lock(mutex_);
  removed_ = true;
}

bool PublishedRun::removed() const {
  const MutexLock lock(mutex_);
  return removed_;
}

// Bytes of the copied logs of the script's ranks, in a run whose only rank is the script.
std::uint64_t PublishedRun::bytes_copied() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, log] : logs_)
    if (log.kind == Kind::Copy) bytes += log.extent.end;
  return bytes;
}

std::uint64_t PublishedRun::bytes_read() const {
  const MutexLock lock(mutex_);
  std::uint64_t bytes = bytes_copied();
  for (const auto& [name, log] : logs_)
    if (log.kind == Kind::Rank) bytes += log.extent.end;
  return bytes;
}

bool PublishedRun::complete() const {
  const MutexLock lock(mutex_);
  return std::ranges::all_of(logs_, [](const auto& log) { return log.second.complete; });
}

void PublishedRun::fill(v1::AttemptReading& reading, std::uint64_t since, BootTime now) {
  const MutexLock lock(mutex_);
  reading.set_job_id(key.first.str());
  reading.set_attempt(key.second.value);
  const std::uint64_t copied = bytes_copied();
  for (const auto& [name, log] : logs_) {
    if (log.kind != Kind::Rank) continue;
    v1::RankReading& to = *reading.add_ranks();
    to.set_rank(name.rank.value);
    to.set_log_bytes(log.extent.end + copied);
  }
  progress_.fill(reading, since);
  if (stepped_at_)
    *reading.mutable_step_age() =
        to_proto(std::max<Duration>(now - *stepped_at_, Duration::zero()));
  if (checkpoints_) checkpoints_->fill(reading, since);
}

void PublishedRun::add_unshipped(Unshipped& to) const {
  const MutexLock lock(mutex_);
  for (const auto& [name, log] : logs_) {
    if (log.complete) continue;
    auto& group = log.failed ? to.failed : log.kind == Kind::Rank ? to.others : to.auxiliaries;
    group.push_back({name, log.extent.end, log.extent.segment, log.ended, log.failed});
  }
}

std::vector<LogName> PublishedRun::names() const {
  const MutexLock lock(mutex_);
  std::vector<LogName> names;
  names.reserve(logs_.size());
  for (const auto& [name, log] : logs_) names.push_back(name);
  return names;
}

std::shared_ptr<LogFile> PublishedRun::file(const LogName& name) const {
  const MutexLock lock(mutex_);
  const auto log = logs_.find(name);
  return log == logs_.end() ? nullptr : log->second.file;
}

bool PublishedRun::ended(const LogName& name) const {
  const MutexLock lock(mutex_);
  const auto log = logs_.find(name);
  return log != logs_.end() && log->second.ended;
}

// The log link and the watch thread read an extent without this mutex. The one that was read first
// may arrive last.
void PublishedRun::Log::advance(const LogFile::Extent& to) {
  const auto order = [](const LogFile::Extent& one) {
    return std::tuple(one.segment, one.end, one.known);
  };
  if (order(to) >= order(extent)) extent = to;
}

void PublishedRun::shipped(const LogName& name, const LogFile::Extent& extent, bool complete) {
  const MutexLock lock(mutex_);
  const auto log = logs_.find(name);
  if (log == logs_.end()) return;
  log->second.advance(extent);
  log->second.complete = log->second.complete || complete;
}

void PublishedRun::rank_failed(RankNo rank, bool failed) {
  const MutexLock lock(mutex_);
  const auto log = logs_.find({.run = key, .rank = rank});
  if (log != logs_.end()) log->second.failed = failed;
}

void PublishedRun::set_extent(const LogName& name, const LogFile::Extent& extent) {
  const MutexLock lock(mutex_);
  logs_.at(name).advance(extent);
}

void PublishedRun::set_ended(const LogName& name) {
  const MutexLock lock(mutex_);
  logs_.at(name).ended = true;
}

bool PublishedRun::stepped() const {
  const MutexLock lock(mutex_);
  return stepped_at_.has_value();
}

std::optional<std::int64_t> PublishedRun::take_steps(const StepsRead& read, const Now& now) {
  const MutexLock lock(mutex_);
  const std::uint32_t rank = read.rank.value;
  if (read.count) {
    for (const engine::StepLine& step : read.steps)
      progress_.step(rank, step, now.wall, marks_->next());
    if (read.loss_vanished) progress_.loss_vanished(rank);
    if (!read.steps.empty() || (!stepped_at_ && progress_.any()))
      stepped_at_ = now.boot - read.behind;
  }
  const engine::StepLine* latest = progress_.any() ? progress_.latest(rank) : nullptr;
  if (latest == nullptr) return std::nullopt;
  return read.steps.empty() ? latest->step : read.steps.front().step;
}

bool PublishedRun::take_checkpoints(std::vector<engine::FoundCheckpoint> found, std::string unknown,
                                    BootTime now, bool last) {
  const MutexLock lock(mutex_);
  const bool news = checkpoints_->accept(std::move(found), marks_->next());
  checkpoints_->accept_unknown(std::move(unknown), now, last);
  return news;
}

}  // namespace muster::agent
