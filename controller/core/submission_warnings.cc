#include "controller/core/submission_warnings.h"

#include <fmt/format.h>

#include <set>

#include "common/engine/model/named_dirs.h"
#include "controller/core/chains/saved_before.h"
#include "controller/core/model/spec_view.h"

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

}  // namespace

std::vector<std::string> submission_warnings(const Ledger& ledger, const v1::JobSpec& spec,
                                             const std::string& out) {
  std::vector<std::string> warnings;
  const bool stated = spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_SHARED ||
                      spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_LOCAL;
  if (spec.resources().nodes() > 1 && !stated && resumes(spec) && !is_one_machine(ledger)) {
    warnings.push_back(
        fmt::format("job '{}' takes {} nodes, and nothing says that they share '{}': without that "
                    "no checkpoint would be whole, and a failure would begin it anew; "
                    "checkpoint.storage: shared says that they do, local that each node goes on "
                    "from its own disk, output_dir names another place",
                    spec.name(), spec.resources().nodes(), out));
  }
  // The launcher inside a script answers the same case itself. Here the spec has a key of its own
  // for it.
  const engine::NamedDirs dirs = engine::named_dirs(spec);
  if (!dirs.load.empty() && dirs.load != dirs.save && !spec.has_start()) {
    const auto saved = saved_by_dir(ledger, WallTime::max());
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
