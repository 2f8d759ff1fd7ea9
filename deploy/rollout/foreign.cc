#include "deploy/rollout/foreign.h"

#include <fmt/format.h>

#include "common/text/shell_word.h"

namespace muster::rollout {

std::string why_foreign(const Surveyed& agent, const std::optional<std::string>& cluster) {
  const std::string& of = agent.check.credentials_cluster;
  // An empty one is not known.
  if (agent.error || agent.wanted.role != Role::Agent || of.empty() || cluster == "" ||
      cluster == of)
    return {};
  return fmt::format(
      "it belongs to cluster '{}', and the controller's host {}; is 'controller' the right host? "
      "If it is, run 'muster deploy down' with the hosts.yaml of that cluster first, or, if that "
      "cluster is gone, remove '{}' on this host",
      of, cluster ? fmt::format("to cluster '{}'", *cluster) : "to none yet",
      agent.check.places.credentials());
}

void mark_foreign(Surveyed& agent, const std::optional<std::string>& cluster) {
  if (std::string why = why_foreign(agent, cluster); !why.empty())
    agent.findings.push_back({.stops = true, .text = std::move(why)});
}

void mark_foreign(std::vector<Surveyed>& surveyed) {
  Surveyed& controller = surveyed.front();
  if (controller.error) return;
  const Surveyed* other = nullptr;
  for (Surveyed& one : surveyed) {
    mark_foreign(one, controller.check.cluster);
    if (other == nullptr && !why_foreign(one, controller.check.cluster).empty()) other = &one;
  }
  // One that runs has another state directory.
  if (other == nullptr || controller.check.cluster || controller.check.running) return;
  controller.findings.push_back(
      {.stops = true,
       .text = fmt::format("no controller has run on it in '{}', and node '{}' belongs to cluster "
                           "'{}'; is 'controller' the right host?",
                           controller.check.places.state_dir, other->wanted.name,
                           other->check.credentials_cluster)});
}

Result<std::string> credentials_cluster(Host& host, const Places& places) {
  auto text = host.need(
      fmt::format("reading the agent's credentials on '{}'", host.name()),
      fmt::format("{} cert show {} 2>/dev/null | sed -n 's/^cluster  *//p'",
                  shell_word(places.current() + "/bin/muster"), shell_word(places.credentials())));
  if (!text) return fail(std::move(text.error()));
  return last_line(*text);
}

}  // namespace muster::rollout
