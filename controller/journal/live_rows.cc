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
  } else if (const auto* drained = std::get_if<core::NodeDrained>(&event.body)) {
    only_last_matters(drained_, drained->node, index);
  } else if (const auto* undrained = std::get_if<core::NodeUndrained>(&event.body)) {
    only_last_matters(drained_, undrained->node, index);
    superseded_.push_back(index);
    drained_.erase(undrained->node);
  } else if (const auto* labelled = std::get_if<core::NodeLabelled>(&event.body)) {
    only_last_matters(labelled_, labelled->node, index);
  } else if (const auto* removed = std::get_if<core::NodeRemoved>(&event.body)) {
    remove_node(removed->node, index);
  } else if (const auto* renamed = std::get_if<core::NodeRenamed>(&event.body)) {
    rename_node(renamed->node, renamed->new_name, index);
  } else if (const auto* set = std::get_if<core::SecretSet>(&event.body)) {
    const auto [known, fresh] = secrets_.try_emplace(set->key, index);
    if (!fresh) superseded_.push_back(std::exchange(known->second, index));
  } else if (const auto* removed_secret = std::get_if<core::SecretRemoved>(&event.body)) {
    if (const auto row = secrets_.extract(removed_secret->key)) superseded_.push_back(row.mapped());
    superseded_.push_back(index);
  } else if (const auto* store = std::get_if<core::StoreSet>(&event.body)) {
    const auto [known, fresh] = stores_.try_emplace(store->key, index);
    if (!fresh) superseded_.push_back(std::exchange(known->second, index));
  } else if (const auto* removed_store = std::get_if<core::StoreRemoved>(&event.body)) {
    if (const auto row = stores_.extract(removed_store->key)) superseded_.push_back(row.mapped());
    superseded_.push_back(index);
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

void LiveRows::only_last_matters(std::map<NodeName, JournalIndex>& rows, const NodeName& node,
                                 JournalIndex index) {
  const auto [known, fresh] = rows.try_emplace(node, index);
  if (!fresh) superseded_.push_back(std::exchange(known->second, index));
}

void LiveRows::remove_node(const NodeName& node, JournalIndex index) {
  if (const auto registered = nodes_.extract(node)) {
    superseded_.push_back(registered.mapped().first);
    if (registered.mapped().last != registered.mapped().first)
      superseded_.push_back(registered.mapped().last);
  }
  for (auto* rows : {&dead_, &drained_, &labelled_}) {
    if (const auto row = rows->extract(node)) superseded_.push_back(row.mapped());
  }
  if (const auto rows = renamed_.extract(node))
    superseded_.insert(superseded_.end(), rows.mapped().begin(), rows.mapped().end());
  superseded_.push_back(index);
}

void LiveRows::rename_node(const NodeName& node, const NodeName& new_name, JournalIndex index) {
  if (const auto dead = dead_.extract(node)) superseded_.push_back(dead.mapped());
  for (auto* rows : {&drained_, &labelled_}) {
    if (auto row = rows->extract(node)) {
      row.key() = new_name;
      rows->insert(std::move(row));
    }
  }
  if (auto registered = nodes_.extract(node)) {
    registered.key() = new_name;
    nodes_.insert(std::move(registered));
  }
  auto earlier = renamed_.extract(node);
  std::vector<JournalIndex>& rows = renamed_[new_name];
  if (earlier) rows = std::move(earlier.mapped());
  rows.push_back(index);
}

void LiveRows::only_ends_matter(Pair& pair, JournalIndex index) {
  if (pair.first.value == 0) {
    pair.first = pair.last = index;
    return;
  }
  if (pair.last != pair.first) superseded_.push_back(pair.last);
  pair.last = index;
}

}  // namespace muster::journal
