#include "client/commands/job/plan_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "client/commands/job/plan_code.h"
#include "client/commands/job/plan_patches.h"
#include "client/import/shell_script.h"

namespace muster::client {

std::vector<std::string> script_warnings(const v1::JobSpec& spec) {
  const v1::LaunchSpec& launch = spec.launch();
  if (launch.per() != v1::LAUNCH_PER_NODE) return {};
  std::vector<std::string> command(launch.run().begin(), launch.run().end());
  if (command.empty()) command.push_back(launch.script());
  std::vector<std::string> replaced, lines;
  for (const auto& [name, value] : launch.vars()) replaced.push_back(name);
  const import::ShellScript script = import::shell_script_of(command, spec.code().at());
  // Only where muster answers the launcher that the script calls.
  if (launch.intercept()) lines = import::computed_warnings(script, replaced);
  const bool resumes = !spec.resume().has_enabled() || spec.resume().enabled();
  if (resumes)
    std::ranges::move(import::weights_warnings(script, replaced), std::back_inserter(lines));
  return lines;
}

std::vector<std::string> plan_warnings(const v1::PlanJobResponse& plan) {
  std::vector<std::string> lines = code_warnings(plan.spec());
  std::ranges::move(patch_warnings(plan), std::back_inserter(lines));
  std::ranges::move(script_warnings(plan.spec()), std::back_inserter(lines));
  return lines;
}

}  // namespace muster::client
