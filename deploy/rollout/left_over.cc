#include "deploy/rollout/left_over.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <chrono>

#include "common/text/shell_word.h"
#include "deploy/rollout/down.h"

namespace muster::rollout {
namespace {

using namespace std::chrono_literals;
constexpr auto kForgetTimeMost = 20s;
constexpr int kForgetEveryMs = 500;

// The controller forgets a node only when its agent's stream has ended. A node that it does not
// know is forgotten already.
Result<void> take_out(ControllerHost& controller, const std::string& name, bool known) {
  auto revoked = controller.muster(
      fmt::format("revoking the certificates of '{}'", name),
      fmt::format("cert revoke {} --why 'removed by muster deploy'", shell_word(name)));
  if (!revoked) return fail(std::move(revoked.error()));
  if (!known) return {};
  for (const auto until = std::chrono::steady_clock::now() + kForgetTimeMost;;) {
    auto forgotten = controller.muster(fmt::format("removing node '{}'", name),
                                       fmt::format("node rm {}", shell_word(name)));
    if (forgotten) return {};
    if (std::chrono::steady_clock::now() > until) return fail(std::move(forgotten.error()));
    ::poll(nullptr, 0, kForgetEveryMs);
  }
}

// Port 0 is the one of ssh_config, which may be any.
bool same_login(const hosts::Login& a, const hosts::Login& b) {
  const auto place = [](const hosts::Login& one) {
    return one.address.empty() ? one.host : one.address;
  };
  return (a.host == b.host || place(a) == place(b)) &&
         (a.port == b.port || a.port == 0 || b.port == 0);
}

// The agent has the place of `left` on its host. One that was not reached has no known places.
bool has_place_of(const Deployed& left, const Surveyed& one) {
  const Places& places = one.check.places;
  return one.wanted.role == Role::Agent && same_login(left.login, one.wanted.login) &&
         (places.prefix.empty() || places.prefix == left.places.prefix ||
          (places.systemd && left.places.systemd));
}

bool is_wanted(const std::string& name, const std::vector<Surveyed>& wanted) {
  return std::ranges::any_of(wanted, [&](const Surveyed& one) {
    return one.wanted.role == Role::Agent && one.wanted.name == name;
  });
}

// The nodes, after those of `left` were drained: a job could begin after the question. `drained`:
// those that were not drained before.
Result<Nodes> drain_left(const std::vector<Outcome>& left, ControllerHost& controller,
                         std::vector<std::string>& drained) {
  const auto before = controller.nodes();
  if (!before) return fail(Error(before.error()));
  for (const Outcome& one : left)
    if (const auto at = before->find(one.name);
        at != before->end() && at->second.drained_for.empty())
      drained.push_back(one.name);
  if (auto done = controller.drain(drained, kPruneDrains); !done)
    return fail(std::move(done.error()));
  return controller.nodes();
}

}  // namespace

std::vector<Outcome> left_over(const Manifest& manifest, const std::vector<Surveyed>& wanted) {
  std::vector<Outcome> out;
  for (const auto& [name, deployed] : manifest.agents) {
    if (is_wanted(name, wanted)) continue;
    const Surveyed* next = successor(deployed, wanted);
    const bool replaced = next != nullptr && !next->stopped();
    out.push_back(
        {.name = name,
         .host = deployed.login.host,
         .good = true,
         .text = replaced
                     ? fmt::format("deployed, and no longer in hosts.yaml: '{}' takes its place on "
                                   "the host; 'muster deploy up --prune' removes the old name",
                                   next->wanted.name)
                     : "deployed, and no longer in hosts.yaml: it still runs; 'muster deploy up "
                       "--prune' removes it"});
  }
  return out;
}

const Surveyed* successor(const Deployed& left, const std::vector<Surveyed>& wanted) {
  const auto at =
      std::ranges::find_if(wanted, [&](const Surveyed& one) { return has_place_of(left, one); });
  return at == wanted.end() ? nullptr : &*at;
}

void mark_renamed(std::vector<Surveyed>& wanted, const Manifest& manifest, const Nodes& nodes) {
  for (const auto& [name, deployed] : manifest.agents) {
    const auto known = nodes.find(name);
    if (known == nodes.end() || known->second.jobs.empty() || is_wanted(name, wanted)) continue;
    for (Surveyed& one : wanted) {
      // Its own credentials are there: it has the place already, and the jobs are lost.
      if (one.error || !has_place_of(deployed, one) ||
          one.check.credentials_of == "node '" + one.wanted.name + "'")
        continue;
      one.findings.push_back(
          {.stops = true,
           .text = fmt::format(
               "it is deployed there as node '{0}', and jobs use that: {1}; under another name "
               "they would be lost. Wait for them, or move them with 'muster node drain {0} "
               "--deadline 0s', then run it again",
               name, fmt::join(known->second.jobs, ", "))});
    }
  }
}

std::vector<Outcome> prune(const std::vector<Outcome>& left, ControllerHost& controller,
                           const std::vector<Surveyed>& wanted, Manifest& manifest,
                           const Crew& crew) {
  std::vector<Outcome> out = left;
  if (out.empty()) return out;
  std::vector<std::string> drained;
  auto nodes = drain_left(left, controller, drained);
  const auto cluster = controller.cluster_id();
  if (nodes && !cluster) nodes = fail(Error(cluster.error()));
  for_each_host(out.size(), [&](std::size_t i) {
    Outcome& one = out[i];
    const std::string name = one.name;
    const auto keep = [&](std::string text) {
      one.good = false;
      one.text = std::move(text);
      crew.progress(name, one.text);
    };
    if (!nodes) return keep(nodes.error().message);
    const auto known = nodes->find(name);
    if (known != nodes->end() && !known->second.jobs.empty())
      return keep(
          fmt::format("jobs use it: {}; end them, or move them with 'muster node drain {} "
                      "--deadline 0s', then run it again",
                      fmt::join(known->second.jobs, ", "), name));
    const Deployed& deployed = manifest.agents.at(name);
    if (const Surveyed* next = successor(deployed, wanted); next == nullptr) {
      const bool programs = !same_prefix(deployed, manifest.controller);
      one = remove_agent(name, deployed,
                         {.programs = programs, .forget = true, .cluster = *cluster}, crew);
      if (!one.good) return;
    } else if (next->stopped()) {
      return keep(fmt::format("its host is now that of '{}', which is not up: {}",
                              next->wanted.name, next->why()));
    } else {
      one.changed = true;
      one.text = fmt::format("its host is now that of '{}'", next->wanted.name);
    }
    if (auto done = take_out(controller, name, known != nodes->end()); !done)
      keep(std::move(done.error().message));
  });
  std::erase_if(drained, [&](const std::string& name) {
    return std::ranges::any_of(out,
                               [&](const Outcome& one) { return one.good && one.name == name; });
  });
  if (auto done = controller.undrain(drained); !done)
    crew.progress("controller", done.error().message);
  for (const Outcome& one : out)
    if (one.good) manifest.agents.erase(one.name);
  return out;
}

}  // namespace muster::rollout
