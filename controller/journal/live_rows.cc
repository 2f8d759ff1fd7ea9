#include "controller/journal/live_rows.h"

#include <algorithm>
#include <utility>

#include "controller/core/model/event_fields.h"
#include "controller/journal/codec.h"

namespace muster::journal {

void LiveRows::add(JournalIndex index, const core::Event& event) {
  if (std::holds_alternative<core::ControllerStarted>(event.body)) {
    only_ends_matter(starts_, index);
  } else if (const auto* registered = std::get_if<core::NodeRegistered>(&event.body)) {
    only_ends_matter(nodes_[registered->node], index);
    if (const auto dead = dead_.extract(registered->node)) superseded_.push_back(dead.mapped());
  } else if (const auto* dead = std::get_if<core::NodeDeclaredDead>(&event.body)) {
    dead_.emplace(dead->node, index);
  } else if (const auto* archived = std::get_if<core::JobArchived>(&event.body)) {
    const auto [known, fresh] = archived_.try_emplace(archived->job, index);
    if (!fresh) superseded_.push_back(std::exchange(known->second, index));
    if (jobs_.contains(archived->job)) unmoved_.insert(archived->job);
  } else if (const auto* dropped = std::get_if<core::TombstoneDropped>(&event.body)) {
    // Without the JobArchived, the job's other rows would become a live job again. So JobArchived
    // stays until they are moved.
    if (const auto known = archived_.find(dropped->job);
        known != archived_.end() && !jobs_.contains(dropped->job)) {
      superseded_.push_back(known->second);
      superseded_.push_back(index);
      archived_.erase(known);
    }
  } else if (const JobId* job = core::job_of(event.body)) {
    jobs_[*job].push_back(index);
    if (archived_.contains(*job)) unmoved_.insert(*job);
  }
}

const std::vector<JournalIndex>& LiveRows::of_job(const JobId& job) const {
  static const std::vector<JournalIndex> none;
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? none : found->second;
}

std::vector<JournalIndex> LiveRows::superseded() const {
  std::vector<JournalIndex> sorted = superseded_;
  std::ranges::sort(sorted);
  return sorted;
}

void LiveRows::moved(const JobId& job) {
  jobs_.erase(job);
  unmoved_.erase(job);
}
void LiveRows::dropped() { superseded_.clear(); }

void LiveRows::only_ends_matter(Pair& pair, JournalIndex index) {
  if (pair.first.value == 0) {
    pair.first = pair.last = index;
    return;
  }
  if (pair.last != pair.first) superseded_.push_back(pair.last);
  pair.last = index;
}

}  // namespace muster::journal
