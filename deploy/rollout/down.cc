#include "deploy/rollout/down.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <span>

#include "deploy/rollout/actions.h"
#include "deploy/rollout/controller_host.h"
#include "deploy/rollout/foreign.h"

namespace muster::rollout {
namespace {

constexpr std::size_t kJobsNamed = 5;

// No answer, in contrast to a host that refuses.
bool is_gone(const Error& error) {
  return error.code == ErrorCode::Unreachable || error.code == ErrorCode::TimedOut;
}

// No controller of this state directory has ever served, and no agent was put anywhere: a first
// `up` failed. A controller that fails at its start may have made its journal, without a cluster's
// id.
bool never_served(const HostCheck& check, const Manifest& manifest) {
  return !check.running && check.cluster.value_or("").empty() && manifest.agents.empty();
}

// `drained`: the nodes that it drained, and that are to be undrained at the end.
Result<void> end_jobs(ControllerHost& controller, bool running, const DownRequest& request,
                      std::vector<std::string>& drained) {
  if (!running && !request.force)
    return fail(ErrorCode::Conflict,
                "taking the cluster down: its controller does not run, so it is not known whether "
                "jobs do; run 'muster deploy up' first, or use --force");
  if (!running) return {};
  // Or a job could begin after the question, and go on without an agent.
  auto nodes = controller.nodes();
  if (!nodes) return fail(std::move(nodes.error()));
  for (const auto& [name, node] : *nodes)
    if (node.drained_for.empty()) drained.push_back(name);
  if (auto done = controller.drain(drained, kDownDrains); !done) return done;
  auto jobs = controller.live_jobs();
  if (!jobs) return fail(std::move(jobs.error()));
  if (jobs->empty()) return {};
  if (!request.force) {
    const auto named = std::span(*jobs).first(std::min(jobs->size(), kJobsNamed));
    return fail(
        ErrorCode::Conflict,
        fmt::format("taking the cluster down: {} jobs have not ended: {}{}; wait for them, "
                    "cancel them, or use --force",
                    jobs->size(), fmt::join(named, ", "), jobs->size() > kJobsNamed ? " ..." : ""));
  }
  for (const std::string& job : *jobs) {
    request.crew.progress("controller", "cancelling " + last_line(job));
    if (auto cancelled = controller.cancel(job); !cancelled) return cancelled;
  }
  return {};
}

}  // namespace

bool same_prefix(const Deployed& a, const Deployed& b) {
  return a.login.host == b.login.host && a.login.port == b.login.port &&
         a.places.prefix == b.places.prefix;
}

Outcome remove_agent(const std::string& name, const Deployed& deployed, const Removal& removal,
                     const Crew& crew) {
  Outcome outcome{.name = name, .host = deployed.login.host};
  bool gone = false, left = false;
  const auto done = [&]() -> Result<void> {
    auto host = opener(deployed.login, crew)();
    if (!host) {
      gone = is_gone(host.error());
      return fail(std::move(host.error()));
    }
    // Somebody has taken the host for another cluster.
    const auto cluster = credentials_cluster(*host, deployed.places);
    if (!cluster) return fail(Error(cluster.error()));
    left = !removal.cluster.empty() && !cluster->empty() && *cluster != removal.cluster;
    if (left) {
      outcome.text = fmt::format("left as it is: it belongs to cluster '{}'", *cluster);
      return {};
    }
    crew.progress(name, "stopping the agent");
    if (auto stopped = stop_daemon(*host, Role::Agent, deployed.places); !stopped) return stopped;
    return remove_role(*host, Role::Agent, deployed,
                       {.purge = removal.purge,
                        .outputs = removal.outputs,
                        .end_jobs = removal.end_jobs,
                        .programs = removal.programs,
                        .node = name,
                        .outputs_root = removal.outputs_root},
                       [&](const std::string& text) { crew.progress(name, text); });
  }();
  const bool forgotten = gone && removal.forget;
  outcome.good = done.has_value() || forgotten;
  outcome.changed = outcome.good && !left;
  if (!done)
    outcome.text = (forgotten ? "forgotten, and what is there stays there: " : "") +
                   done.error().message +
                   (gone && !forgotten ? "; if the host does not come back, use --force" : "");
  crew.progress(name, done && !left ? "removed" : outcome.text);
  return outcome;
}

Result<std::vector<Outcome>> take_down(const DownRequest& request) {
  const std::string& cluster = request.file.cluster;
  const hosts::Controller& head = request.file.controller;
  hosts::HostsFile only{.cluster = cluster, .controller = head, .agents = {}};
  auto surveyed = survey(wanted_of(only), head, nullptr, {}, request.crew);
  Surveyed& first = surveyed.front();
  if (first.error) return fail(std::move(*first.error));
  ControllerHost controller(std::move(*first.host), first.check.places);
  auto found = controller.read_manifest();
  if (!found) return fail(std::move(found.error()));
  if (!*found) return std::vector<Outcome>();
  auto locked = controller.lock(opener(head.login, request.crew));
  if (!locked) return fail(std::move(locked.error()));
  // Once more: another one may have changed it until the lock was taken.
  found = controller.read_manifest();
  if (!found || !*found) {
    controller.unlock();
    if (!found) return fail(std::move(found.error()));
    return std::vector<Outcome>();
  }
  Manifest manifest = std::move(**found);
  Result<void> allowed = controller.with_host(
      [&](Host& host) { return check_again(first, host, head, nullptr, {}, false); });
  if (allowed && manifest.cluster != cluster)
    allowed = fail(ErrorCode::Conflict,
                   fmt::format("taking cluster '{}' down: the manifest on '{}' is of cluster '{}'; "
                               "is it the right hosts.yaml?",
                               cluster, head.login.host, manifest.cluster));
  std::vector<std::string> drained;
  if (allowed && !never_served(first.check, manifest))
    allowed = end_jobs(controller, first.check.running, request, drained);
  if (!allowed) {
    (void)controller.undrain(drained);
    controller.unlock();
    return fail(std::move(allowed.error()));
  }
  take_login(manifest.controller, head.login);
  for (const hosts::Agent& agent : request.file.agents)
    if (const auto at = manifest.agents.find(agent.name); at != manifest.agents.end())
      take_login(at->second, agent.login);
  const std::vector<std::pair<std::string, Deployed>> agents(manifest.agents.begin(),
                                                             manifest.agents.end());
  std::vector<Outcome> outcomes(agents.size());
  for_each_host(agents.size(), [&](std::size_t i) {
    const auto& [name, deployed] = agents[i];
    outcomes[i] = remove_agent(
        name, deployed,
        {.programs = !same_prefix(deployed, manifest.controller),
         .purge = request.purge,
         .end_jobs = request.force,
         .forget = request.force,
         .outputs = request.outputs,
         .outputs_root = fmt::format("{}/{}", manifest.controller.places.state_dir, kOutputsDir),
         .cluster = first.check.cluster.value_or("")},
        request.crew);
  });
  for (const Outcome& one : outcomes)
    if (one.good) manifest.agents.erase(one.name);
  if (auto done = controller.undrain(drained); !done)
    request.crew.progress("controller", done.error().message);
  outcomes.insert(outcomes.begin(),
                  Outcome{.name = "controller", .host = manifest.controller.login.host});
  Outcome& last = outcomes.front();
  Result<void> done;
  if (!manifest.agents.empty()) {
    last.text = "stays, because agents are left";
    done = controller.write_manifest(manifest);
    controller.unlock();
  } else {
    const Deployed& deployed = manifest.controller;
    request.crew.progress("controller", "stopping the controller");
    done = controller.with_host(
        [&](Host& host) { return stop_daemon(host, Role::Controller, deployed.places); });
    if (done) done = controller.remove_manifest();
    controller.unlock();
    if (done)
      done = controller.with_host([&](Host& host) {
        return remove_role(
            host, Role::Controller, deployed,
            {.purge = request.purge, .outputs = request.outputs, .programs = true},
            [&](const std::string& text) { request.crew.progress("controller", text); });
      });
    last.good = last.changed = done.has_value();
    if (done) request.crew.progress("controller", "removed");
  }
  if (!done) last.text = done.error().message;
  return outcomes;
}

}  // namespace muster::rollout
