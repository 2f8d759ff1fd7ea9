#include "controller/core/submission_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "common/engine/model/engine.h"
#include "common/engine/model/named_dirs.h"
#include "common/store/store_url.h"
#include "controller/core/chains/saved_before.h"
#include "controller/core/model/spec_view.h"
#include "controller/core/nodes/outputs_storage.h"
#include "controller/core/placement/node_fit.h"

namespace muster::core {
namespace {

// Agents on one machine see the same files.
bool is_one_machine(const Ledger& ledger) {
  std::set<BootId> boots;
  for (const auto& [name, node] : ledger.nodes) {
    if (!node.dead) boots.insert(node.boot_id);
  }
  return boots.size() <= 1;
}

// The nodes that could hold a part of the job, whatever they do now.
std::vector<NodeName> could_run(const Ledger& ledger, const v1::JobSpec& spec) {
  std::vector<const NodeRecord*> nodes;
  const auto& hosts = spec.resources().hosts();
  for (const auto& [name, node] : ledger.nodes) {
    if (hosts.empty() || std::ranges::find(hosts, name.str()) != hosts.end())
      nodes.push_back(&node);
  }
  const std::vector<std::string> types = types_to_try(nodes, spec);
  std::vector<NodeName> able;
  for (const NodeRecord* node : nodes) {
    if (std::ranges::any_of(types, [&](const std::string& type) {
          return capacity(*node, spec, type).why.empty();
        }))
      able.push_back(node->name);
  }
  return able;
}

// What the agents' checks say of the nodes' storage.
enum class Storage : std::uint8_t { Unknown, Shared, Apart };
Storage storage_of(const OutputsStorage& storage, const std::vector<NodeName>& nodes) {
  std::set<std::string> names;
  for (const NodeName& node : nodes) names.insert(storage.of(node));
  const bool all_known = names.erase(std::string()) == 0;
  if (names.size() > 1) return Storage::Apart;
  return all_known && !names.empty() ? Storage::Shared : Storage::Unknown;
}

// With checkpoint.storage: shared the job gets only nodes that share it (placement/one_storage.h).
std::string storage_warning(const AcceptedJob& accepted) {
  const v1::JobSpec& spec = accepted.job.spec;
  const Limits& limits = accepted.limits;
  const bool stated = spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_SHARED ||
                      spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_LOCAL;
  if (spec.resources().nodes() < 2 || stated || !resumes(spec)) return {};
  if (saves_below_outputs(spec, accepted.job.resolved, accepted.job.id, limits)) {
    const OutputsStorage storage(accepted.presence, limits.outputs_root, accepted.now);
    const std::vector<NodeName> nodes =
        accepted.nodes.empty() ? could_run(accepted.ledger, spec) : accepted.nodes;
    switch (storage_of(storage, nodes)) {
      case Storage::Shared: return {};
      case Storage::Apart:
        return fmt::format(
            "job '{}' takes {} nodes, and not all {} see the same files in '{}' (storage of {}): "
            "what a node saves there is lost with the node, and no checkpoint is whole without it; "
            "checkpoint.storage: local makes each node go on from its own disk, an outputs.dir on "
            "storage that they share keeps the checkpoints",
            spec.name(), spec.resources().nodes(),
            accepted.nodes.empty() ? "that could run it" : "that it gets", limits.outputs_root,
            storages_text(storage, nodes));
      case Storage::Unknown: break;
    }
  }
  if (is_one_machine(accepted.ledger)) return {};
  return fmt::format(
      "job '{}' takes {} nodes, and nothing says that they share '{}': without that no checkpoint "
      "would be whole, and a failure would begin it anew; checkpoint.storage: shared says that "
      "they do, local that each node goes on from its own disk, output_dir names another place",
      spec.name(), spec.resources().nodes(), accepted.out);
}

// The input in a store that an argument with beginnings of files' names reads; empty: none does.
std::string prefix_input(const v1::JobSpec& spec, const engine::Engine& engine) {
  for (const auto* words : {&spec.launch().run(), &spec.launch().args()}) {
    bool reads = false;
    for (const std::string& word : *words) {
      if (word.starts_with("--"))
        reads = std::ranges::any_of(engine.prefix_options, [&](std::string_view option) {
          return word == option || word.starts_with(std::string(option) + "=");
        });
      if (!reads) continue;
      for (const v1::InputSpec& input : spec.inputs())
        if (store::is_url(input.from()) &&
            word.contains(fmt::format("${{inputs.{}}}/", input.name())))
          return input.name();
    }
  }
  return {};
}

// Megatron makes index files beside its data, on the first node alone.
std::string index_warning(const v1::JobSpec& spec) {
  constexpr std::string_view kPatch = "node-local-index";
  const engine::Engine* engine = engine::find_engine(spec.engine());
  if (engine == nullptr || spec.resources().nodes() < 2) return {};
  if (std::ranges::find(engine->builtin_patches, kPatch) == engine->builtin_patches.end())
    return {};
  const std::string name = fmt::format("builtin:{}", kPatch);
  if (std::ranges::find(spec.code().patches(), name, &v1::CodePatch::name) !=
      spec.code().patches().end())
    return {};
  const std::string input = prefix_input(spec, *engine);
  if (input.empty()) return {};
  return fmt::format(
      "job '{}': each of its {} nodes has data of its own (inputs.{}), and Megatron-LM builds the "
      "index files of its data on one node alone: the others would wait for them; code.patches: "
      "[{}] builds them on each node",
      spec.name(), spec.resources().nodes(), input, name);
}

}  // namespace

std::vector<std::string> submission_warnings(const AcceptedJob& accepted) {
  const v1::JobSpec& spec = accepted.job.spec;
  std::vector<std::string> warnings;
  if (std::string warning = storage_warning(accepted); !warning.empty())
    warnings.push_back(std::move(warning));
  if (std::string warning = index_warning(spec); !warning.empty())
    warnings.push_back(std::move(warning));
  // The launcher inside a script answers the same case itself. Here the spec has a key of its own
  // for it.
  const engine::NamedDirs dirs = engine::named_dirs(spec);
  if (!dirs.load.empty() && dirs.load != dirs.save && !spec.has_start()) {
    const auto saved = saved_by_dir(accepted.ledger, WallTime::max());
    if (const auto found = saved.find(dirs.load);
        found != saved.end() && !found->second.front().path.empty()) {
      const SavedBefore& newest = found->second.front();
      warnings.push_back(
          fmt::format("--load '{0}': job {1} would have saved there, and saved in a directory of "
                      "its own, '{2}': what --load finds is none of that job's; start: {{from: "
                      "'job:{1}', as: resume}} goes on from its step {3}, as: weights begins with "
                      "its weights",
                      dirs.load, newest.job.str(), newest.path, newest.step));
    }
  }
  return warnings;
}

}  // namespace muster::core
