#include "controller/core/nodes/outputs_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "common/engine/model/engine.h"
#include "controller/core/model/spec_view.h"

namespace muster::core {
namespace {

constexpr std::size_t kNameLength = 8;     // of the storage's id
constexpr std::size_t kStoragesNamed = 4;  // in one text

bool sees(const NodeSeen& one, const NodeSeen& other) {
  return std::ranges::binary_search(one.outputs->instances, other.instance);
}

// After an outage of the storage its marks are old, and each node makes its own anew.
BootTime good_since(const NodeSeen& seen) {
  return std::max(seen.connected_at, seen.outputs_good_since);
}

bool share(const NodeSeen& one, const NodeSeen& other) {
  return sees(one, other) && sees(other, one);
}

}  // namespace

OutputsStorage::OutputsStorage(const Presence& presence, const std::string& root, Now now) {
  if (root.empty()) return;
  // Who is connected for longest names the storage, so that a new node changes no names.
  std::map<std::string, std::vector<std::pair<NodeName, const NodeSeen*>>> by_id;
  for (const auto& [name, seen] : presence.nodes) {
    if (seen.connection == ConnectionId() || !seen.outputs || seen.outputs->root != root) continue;
    if (!seen.outputs->good()) continue;
    by_id[seen.outputs->storage_id].emplace_back(name, &seen);
  }
  for (auto& [id, nodes] : by_id) {
    std::ranges::stable_sort(nodes, {}, [](const auto& one) { return good_since(*one.second); });
    std::vector<std::pair<std::string, const NodeSeen*>> firsts;  // of each storage with this id
    for (const auto& [name, seen] : nodes) {
      const auto same =
          std::ranges::find_if(firsts, [&](const auto& one) { return share(*one.second, *seen); });
      if (same != firsts.end()) {
        of_[name] = same->first;
        continue;
      }
      // All in `firsts` are well for longer.
      if (!firsts.empty() && now.boot - good_since(*seen) < kMarksAppear) continue;
      const std::string short_id = id.substr(0, kNameLength);
      firsts.emplace_back(
          firsts.empty() ? short_id : fmt::format("{}/{}", short_id, firsts.size() + 1), seen);
      of_[name] = firsts.back().first;
    }
  }
  for (const auto& [name, storage] : of_) ++nodes_[storage];
}

const std::string& OutputsStorage::of(const NodeName& node) const {
  static const std::string unknown;
  const auto found = of_.find(node);
  return found == of_.end() ? unknown : found->second;
}

std::size_t OutputsStorage::nodes_with(const std::string& storage) const {
  const auto found = nodes_.find(storage);
  return found == nodes_.end() ? 0 : found->second;
}

bool saves_below_outputs(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved,
                         const JobId& job, const Limits& limits) {
  if (limits.outputs_root.empty() || spec.resources().nodes() < 2 || !resumes(spec)) return false;
  const auto dir =
      engine::checkpoint_dir(spec, engine::out_dir(spec, resolved, job.str(), limits.cluster_out));
  // A path with ".." may lead anywhere.
  return dir && dir->starts_with(limits.outputs_root + "/") && !(*dir + "/").contains("/../");
}

std::string storages_text(const OutputsStorage& storage, const std::vector<NodeName>& nodes) {
  std::vector<std::tuple<std::string, NodeName, std::size_t>> storages;  // name, first node, others
  for (const NodeName& node : nodes) {
    const std::string& name = storage.of(node);
    if (name.empty()) continue;
    const auto known = std::ranges::find_if(
        storages, [&](const auto& one) { return std::get<std::string>(one) == name; });
    if (known == storages.end())
      storages.emplace_back(name, node, 0);
    else
      ++std::get<std::size_t>(*known);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(storages.size(), kStoragesNamed); ++i) {
    const auto& [name, node, others] = storages[i];
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", node.str());
    if (others > 0) text += fmt::format(" and {} other{}", others, others == 1 ? "" : "s");
  }
  if (storages.size() > kStoragesNamed)
    text += fmt::format(", and nodes with {} more", storages.size() - kStoragesNamed);
  return text;
}

}  // namespace muster::core
