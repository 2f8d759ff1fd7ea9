#include "deploy/rollout/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "common/base/version.h"
#include "deploy/rollout/actions.h"
#include "deploy/rollout/controller_host.h"
#include "deploy/rollout/foreign.h"
#include "deploy/rollout/instance.h"

namespace muster::rollout {

std::vector<DaemonStatus> read_status(const hosts::HostsFile& file, const Crew& crew) {
  auto surveyed = survey(wanted_of(file), file.controller, nullptr, std::string(kVersion), crew);
  std::vector<DaemonStatus> out;
  std::map<std::string, NodeSeen> nodes;
  std::optional<Manifest> manifest;
  std::string other, trouble = "the controller's host is not reachable";
  bool answers = false;
  // Of those that do not run.
  std::vector<std::string> log_ends(surveyed.size());
  const auto read_log_end = [](Host& host, const Surveyed& one) {
    if (one.check.running || one.check.current.empty()) return std::string();
    return log_end(host, one.wanted.role, one.check.places);
  };
  if (Surveyed& first = surveyed.front(); !first.error) {
    ControllerHost controller(std::move(*first.host), first.check.places);
    log_ends.front() = controller.with_host([&](Host& host) { return read_log_end(host, first); });
    if (auto read = controller.read_manifest()) {
      manifest = std::move(*read);
      other = why_not_deployed_by(file.cluster, manifest ? &*manifest : nullptr,
                                  first.check.running, first.check.places);
    } else {
      trouble = read.error().message;
    }
    if (auto seen = controller.nodes()) {
      nodes = std::move(*seen);
      answers = true;
    } else {
      trouble = first.check.running ? seen.error().message : "the controller does not run";
    }
  }
  mark_foreign(surveyed);
  // Another machine may have the node's name: that one is alive, and this one is not registered.
  std::vector<std::optional<std::string>> not_own(surveyed.size());
  for_each_host(surveyed.size(), [&](std::size_t i) {
    Surveyed& one = surveyed[i];
    const auto at = nodes.find(one.wanted.name);
    if (one.wanted.role != Role::Agent || one.error) return;
    log_ends[i] = read_log_end(*one.host, one);
    if (at != nodes.end() && at->second.alive)
      not_own[i] = why_not_own(*one.host, one.check.places, at->second.instance);
  });
  for (std::size_t i = 0; i < surveyed.size(); ++i) {
    const Surveyed& one = surveyed[i];
    DaemonStatus row{.name = one.wanted.name,
                     .host = one.wanted.login.host,
                     .reachable = !one.error,
                     .running = one.check.running,
                     .version = one.check.current};
    if (one.wanted.role == Role::Controller) {
      row.registered = answers;
      row.other = !other.empty();
    } else if (const auto at = nodes.find(row.name); at != nodes.end()) {
      row.registered = at->second.alive && !not_own[i];
      if (row.registered) row.version = at->second.version;
    }
    if (one.error) {
      row.text = one.error->message;
    } else if (row.other) {
      row.text = other;
    } else if (one.stopped()) {
      row.text = one.why();
    } else if (one.check.current.empty()) {
      row.text = "nothing is deployed there";
    } else if (!row.registered && !not_own[i].value_or("").empty()) {
      row.text = *not_own[i];
    } else if (!row.running) {
      row.text = fmt::format(
          "it does not run; 'muster deploy up' starts it{}",
          log_ends[i].empty() ? "" : fmt::format("; its log ends with: {}", log_ends[i]));
    } else if (!row.registered) {
      row.text = answers ? "it runs, and the controller does not see it" : trouble;
    }
    out.push_back(std::move(row));
  }
  if (!manifest) return out;
  for (const auto& [name, deployed] : manifest->agents) {
    if (std::ranges::find(out, name, &DaemonStatus::name) != out.end()) continue;
    const auto at = nodes.find(name);
    out.push_back(
        {.name = name,
         .host = deployed.login.host,
         .registered = at != nodes.end() && at->second.alive,
         .version = deployed.versions.empty() ? "" : deployed.versions.back(),
         .text = "deployed, and no longer in the file; 'muster deploy up --prune' removes it",
         .left = true});
  }
  return out;
}

}  // namespace muster::rollout
