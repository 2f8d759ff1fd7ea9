#include "controller/core/submission_warnings.h"

#include <fmt/format.h>

#include <set>

#include "controller/core/spec_view.h"

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

std::vector<std::string> submission_warnings(const Ledger& ledger, const v1::JobSpec& spec, const std::string& out) {
  std::vector<std::string> warnings;
  const bool said = spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_SHARED || spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_LOCAL;
  if (spec.resources().nodes() > 1 && !said && resumes(spec) && !is_one_machine(ledger)) {
    warnings.push_back(
        fmt::format("job '{}' takes {} nodes, and nothing says that they share '{}': without that no checkpoint would be whole, and a failure would begin it "
                    "anew; checkpoint.storage: shared says that they do{}, output_dir names another place",
                    spec.name(), spec.resources().nodes(), out, spec.engine() == "mindformers" ? ", local that they do not" : ""));
  }
  return warnings;
}

}  // namespace muster::core
