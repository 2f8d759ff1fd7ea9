#include "tests/sim/disk_journal.h"

#include <algorithm>
#include <map>
#include <set>

#include "controller/journal/codec.h"

namespace muster::sim {

void DiskJournal::commit() {
  if (in_flight_.empty()) return;
  last_batch_ = in_flight_.size();
  last_ = in_flight_.back().index;
  for (journal::Row& row : in_flight_) rows_.push_back(std::move(row));
  in_flight_.clear();
}

void DiskJournal::lose_last_batch() {
  rows_.resize(rows_.size() - std::min(last_batch_, rows_.size()));
  last_ = rows_.empty() ? JournalIndex(0) : rows_.back().index;
  last_batch_ = 0;
}

void DiskJournal::archive(const JobId& job) {
  std::erase_if(rows_, [&](const journal::Row& row) {
    const JobId* about = journal::job_of(row.event);
    return about != nullptr && *about == job && !std::holds_alternative<core::JobArchived>(row.event.body);
  });
  last_batch_ = 0;
}

void DiskJournal::prune() {
  std::set<JobId> dropped;
  std::map<NodeName, std::vector<std::size_t>> registered;
  std::vector<std::size_t> started;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const core::EventBody& body = rows_[i].event.body;
    if (const auto* gone = std::get_if<core::TombstoneDropped>(&body)) dropped.insert(gone->job);
    if (const auto* node = std::get_if<core::NodeRegistered>(&body)) registered[node->node].push_back(i);
    if (std::holds_alternative<core::ControllerStarted>(body)) started.push_back(i);
  }
  std::set<JournalIndex> gone;
  const auto keep_ends = [&](const std::vector<std::size_t>& of) {
    for (std::size_t i = 1; i + 1 < of.size(); ++i) gone.insert(rows_[of[i]].index);
  };
  keep_ends(started);
  for (const auto& [node, of] : registered) keep_ends(of);
  std::erase_if(rows_, [&](const journal::Row& row) {
    const JobId* about = journal::job_of(row.event);
    return gone.contains(row.index) || (about != nullptr && dropped.contains(*about));
  });
  last_batch_ = 0;
}

}  // namespace muster::sim
