#include "controller/links/logs_collected.h"

#include <algorithm>

#include "common/log/log.h"

namespace muster::controller {
namespace {

// The ledger does not know such a job: it was forgotten, or its submission was lost with the end of
// a damaged journal. Somebody may still want to read its logs. So they are kept as long as those of
// a job that ended when the last byte arrived.
constexpr Duration kUnknownKeep = core::Limits().tombstone_keep;

// No run has more: 64 files of a script's ranks, those of an engine's auxiliary processes, and the
// setup's.
constexpr std::size_t kAuxiliariesMost = 80;

}  // namespace

LogsCollected::Part LogsCollected::part_of(const JobId& job, AttemptNo attempt,
                                           const core::PlacedNode& placed) {
  return {job, attempt, placed.node, placed.instance, placed.first_rank, placed.rank_count};
}

void LogsCollected::start(const core::Ledger& ledger) {
  std::vector<Part> parts;
  std::vector<std::pair<WallTime, JobId>> finished;
  std::vector<JobId> running;
  const MutexLock lock(mutex_);
  for (const auto& [id, job] : ledger.jobs) {
    known_.try_emplace(id);
    if (job.ended_at)
      finished.emplace_back(*job.ended_at, id);
    else
      running.push_back(id);
    for (const core::AttemptRecord& attempt : job.attempts) {
      for (const core::NodePart& part : attempt.parts) {
        add_parts(id, attempt.number, {&part.placed, 1});
        if (!part.logs_collected) parts.push_back(part_of(id, attempt.number, part.placed));
      }
    }
  }
  for (const auto& [id, stone] : ledger.tombstones) {
    known_.try_emplace(id);
    finished.emplace_back(stone.ended_at, id);
  }
  std::ranges::sort(finished);
  work_.post("logs-collected", [this, parts = std::move(parts), finished = std::move(finished),
                                running = std::move(running)] {
    work_.assert_on();
    for (const JobId& id : running) store_.unmark_finished(id);
    remove_forgotten(shell_.now().wall);
    for (const auto& [at, id] : finished) store_.mark_finished(id);
    for (const Part& part : parts) check(part);
  });
}

bool LogsCollected::known(const JobId& job) const {
  const MutexLock lock(mutex_);
  return known_.contains(job);
}

bool LogsCollected::is_of(const logs::LogKey& key, const NodeName& node,
                          const InstanceId& instance) {
  const MutexLock lock(mutex_);
  const auto job = known_.find(key.job);
  if (job == known_.end()) return false;
  for (auto& [part, auxiliaries] : job->second) {
    if (part.attempt != key.attempt || part.node != node || part.instance != instance) continue;
    if (key.auxiliary.empty())
      return key.rank.value >= part.first.value && key.rank.value - part.first.value < part.count;
    if (auxiliaries.size() < kAuxiliariesMost) auxiliaries.insert(key.auxiliary);
    return auxiliaries.contains(key.auxiliary);
  }
  return false;
}

bool LogsCollected::is_others(const logs::LogKey& key, const NodeName& node) const {
  const MutexLock lock(mutex_);
  const auto job = known_.find(key.job);
  if (job == known_.end()) return false;
  bool placed = false;
  for (const auto& [part, auxiliaries] : job->second) {
    if (part.attempt != key.attempt) continue;
    if (part.node == node) return false;
    placed = true;
  }
  return placed;
}

void LogsCollected::add_parts(const JobId& job, AttemptNo attempt,
                              std::span<const core::PlacedNode> nodes) {
  const auto known = known_.find(job);
  if (known == known_.end()) return;
  for (const core::PlacedNode& placed : nodes)
    known->second.push_back({.part = part_of(job, attempt, placed)});
}

void LogsCollected::on_release(std::span<const journal::Row> rows) {
  for (const journal::Row& row : rows) {
    if (const auto* submitted = std::get_if<core::JobSubmitted>(&row.event.body)) {
      const MutexLock lock(mutex_);
      known_.try_emplace(submitted->job);
    } else if (const auto* placed = std::get_if<core::AttemptPlaced>(&row.event.body)) {
      const MutexLock lock(mutex_);
      add_parts(placed->job, placed->attempt, placed->nodes);
    } else if (const auto* dropped = std::get_if<core::TombstoneDropped>(&row.event.body)) {
      work_.post("log-removed", [this, job = dropped->job] {
        work_.assert_on();
        remove(job);
      });
      const MutexLock lock(mutex_);
      known_.erase(dropped->job);
    } else if (const auto* ended = std::get_if<core::JobEnded>(&row.event.body)) {
      work_.post("log-finished", [this, job = ended->job] { store_.mark_finished(job); });
    } else if (const auto* archived = std::get_if<core::JobArchived>(&row.event.body)) {
      {
        const MutexLock lock(mutex_);
        if (const auto job = known_.find(archived->job); job != known_.end())
          job->second = std::vector<Open>();
      }
      work_.post("log-archived", [this, job = archived->job] {
        work_.assert_on();
        std::erase_if(complete_below_,
                      [&](const auto& entry) { return std::get<0>(entry.first) == job; });
      });
    }
  }
}

void LogsCollected::on_complete(const JobId& job, AttemptNo attempt, RankNo rank) {
  shell_.read_always([this, job, attempt, rank](const View& view) {
    const auto record = view.ledger.jobs.find(job);
    if (record == view.ledger.jobs.end()) return;
    const core::AttemptRecord* found = record->second.attempt(attempt);
    if (found == nullptr) return;
    const core::NodePart* part = found->part_of(rank);
    if (part == nullptr || part->logs_collected) return;
    work_.post("logs-collected", [this, checked = part_of(job, attempt, part->placed)] {
      work_.assert_on();
      check(checked);
    });
  });
}

void LogsCollected::remove(const JobId& job) {
  if (auto removed = store_.remove(job); !removed)
    log::warn("logs of a forgotten job are left behind",
              {{"job", job.str()}, {"why", removed.error().message}});
}

void LogsCollected::remove_forgotten(WallTime now) {
  for (const JobId& job : store_.jobs()) {
    if (known(job)) continue;
    if (now - store_.written_at(job) >= kUnknownKeep) {
      remove(job);
    } else {
      store_.mark_finished(job);
    }
  }
}

void LogsCollected::check(const Part& part) {
  const std::tuple key(part.job, part.attempt, part.node);
  std::uint32_t& below = complete_below_[key];
  while (below < part.count) {
    const auto state = store_.state({part.job, part.attempt, RankNo(part.first.value + below)});
    if (!state)
      log::warn("a log's state cannot be read", {{"job", part.job.str()},
                                                 {"attempt", part.attempt.value},
                                                 {"why", state.error().message}});
    if (!state || !state->durable) return;
    ++below;
  }
  complete_below_.erase(key);
  shell_.report(
      core::ReportLogsCollected{.job = part.job, .attempt = part.attempt, .node = part.node},
      shell_.now(), {});
}

}  // namespace muster::controller
