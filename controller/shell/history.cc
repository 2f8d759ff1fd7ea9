#include "controller/shell/history.h"

#include <algorithm>

namespace muster::controller {
namespace {

bool index_below(std::uint64_t index, const EventPtr& event) { return index < event->index(); }

}  // namespace

void History::add(EventPtr event) {
  if (!event->job_id().empty()) jobs_[JobId(event->job_id())].push_back(event);
  tail_.push_back(std::move(event));
  while (tail_.size() > tail_max_) {
    dropped_ = JournalIndex(tail_.front()->index());
    tail_.pop_front();
  }
}

void History::forget(const JobId& job) { jobs_.erase(job); }

void History::missing_to(JournalIndex index) { dropped_ = std::max(dropped_, index); }

std::optional<std::vector<EventPtr>> History::after(JournalIndex index) const {
  if (index.value != 0 && index < dropped_) return std::nullopt;
  const auto first = std::upper_bound(tail_.begin(), tail_.end(), index.value, index_below);
  return std::vector<EventPtr>(first, tail_.end());
}

std::vector<EventPtr> History::of_job(const JobId& job, JournalIndex after) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return {};
  const auto first =
      std::upper_bound(found->second.begin(), found->second.end(), after.value, index_below);
  return {first, found->second.end()};
}

}  // namespace muster::controller
