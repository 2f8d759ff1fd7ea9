#include "controller/core/placement/one_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "controller/core/nodes/outputs_storage.h"

namespace muster::core {

OneStorage::OneStorage(const Placing& placing, const std::vector<const NodeRecord*>& candidates)
    : root_(placing.limits.outputs_root) {
  const JobRecord& job = placing.job;
  if (job.spec.checkpoint().storage() != v1::CHECKPOINT_STORAGE_SHARED ||
      !saves_below_outputs(job.spec, job.resolved, job.id, placing.limits))
    return;
  const OutputsStorage storage(placing.presence, root_, placing.now);
  std::map<std::string, std::size_t> counts;
  for (const NodeRecord* node : candidates) {
    names_.push_back(node->name);
    of_.push_back(storage.of(node->name));
    if (!of_.back().empty()) ++counts[of_.back()];
  }
  if (counts.size() < 2) return;
  for (const auto& [name, count] : counts) storages_.push_back(name);
  std::string home;
  if (const AttemptRecord* before = job.current(); before != nullptr && !before->parts.empty())
    home = storage.of(before->parts.front().placed.node);
  std::ranges::stable_sort(storages_, [&](const std::string& one, const std::string& other) {
    if ((one == home) != (other == home)) return one == home;
    return counts.at(one) > counts.at(other);
  });
}

std::string OneStorage::refuses(const std::vector<bool>& able, std::size_t needed) const {
  if (!matters()) return {};
  std::map<std::string, std::size_t> counts;
  std::size_t unknown = 0, most = 0;
  for (std::size_t at = 0; at < able.size(); ++at) {
    if (!able[at]) continue;
    if (of_[at].empty())
      ++unknown;
    else
      most = std::max(most, ++counts[of_[at]]);
  }
  if (most + unknown >= needed) return {};
  std::string text;
  for (std::size_t at = 0; at < able.size(); ++at) {
    if (able[at] && !of_[at].empty() && counts.extract(of_[at]))
      text += fmt::format("{}'{}'", text.empty() ? "" : ", ", names_[at].str());
  }
  return fmt::format(
      "checkpoint.storage: shared, but at most {} of the nodes that could do see the same files in "
      "'{}' ({} see different ones): say checkpoint.storage: local, or name an outputs.dir on "
      "storage that they share",
      most + unknown, root_, text);
}

std::vector<std::string> OneStorage::reasons(const std::string& storage) const {
  std::string example;
  for (std::size_t at = 0; at < of_.size() && example.empty(); ++at) {
    if (of_[at] == storage) example = names_[at].str();
  }
  std::vector<std::string> reasons(of_.size());
  for (std::size_t at = 0; at < of_.size(); ++at) {
    if (!of_[at].empty() && of_[at] != storage)
      reasons[at] = fmt::format(
          "does not see the files of '{}' in '{}' (checkpoint.storage: shared)", example, root_);
  }
  return reasons;
}

}  // namespace muster::core
