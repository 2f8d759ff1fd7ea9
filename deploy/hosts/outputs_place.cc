#include "deploy/hosts/outputs_place.h"

#include <fmt/format.h>

#include <string_view>

namespace muster::hosts {
namespace {

// Those of root; another user's are below its home directory, which only its host knows.
constexpr std::string_view kControllerState = "/var/lib/muster/controller";
constexpr std::string_view kAgentState = "/var/lib/muster/agent";

std::string_view dir_of(std::string_view path, std::string_view otherwise = {}) {
  if (path.empty()) return otherwise;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

bool is_in(std::string_view path, std::string_view dir) {
  return path.starts_with(dir) && (path.size() == dir.size() || path[dir.size()] == '/');
}

}  // namespace

std::string why_no_outputs_place(const HostsFile& file) {
  constexpr std::string_view kOption = "--outputs-root=";
  const std::string_view state = dir_of(file.controller.state_dir, kControllerState);
  const std::string usual = fmt::format("{}/outputs", state);
  std::string_view outputs = usual;
  for (const std::string_view word : file.controller.options)
    if (word.starts_with(kOption)) outputs = dir_of(word.substr(kOption.size()));
  const auto sentence = [&](std::string_view whose, std::string_view dir) {
    return fmt::format(
        "outputs of jobs ('{}') would lie in the state directory of {} ('{}'), which 'muster "
        "deploy down --purge' removes; give another outputs_root or state_dir",
        outputs, whose, dir);
  };
  if (outputs != usual && is_in(outputs, state)) return sentence("the controller", state);
  for (const Agent& agent : file.agents)
    if (const std::string_view dir = dir_of(agent.state_dir, kAgentState); is_in(outputs, dir))
      return sentence(fmt::format("agent '{}'", agent.name), dir);
  return {};
}

}  // namespace muster::hosts
