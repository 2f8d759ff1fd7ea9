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

}  // namespace

std::vector<Outcome> left_over(const Manifest& manifest, const std::vector<Surveyed>& wanted) {
  std::vector<Outcome> out;
  for (const auto& [name, deployed] : manifest.agents) {
    if (std::ranges::any_of(wanted, [&](const Surveyed& one) {
          return one.wanted.role == Role::Agent && one.wanted.name == name;
        }))
      continue;
    out.push_back({.name = name,
                   .host = deployed.login.host,
                   .good = true,
                   .text = "deployed, and no longer in hosts.yaml: it still runs; 'muster deploy "
                           "up --prune' removes it"});
  }
  return out;
}

std::vector<Outcome> prune(const std::vector<Outcome>& left, ControllerHost& controller,
                           const Nodes& nodes, Manifest& manifest, const Crew& crew) {
  std::vector<Outcome> out = left;
  for_each_host(out.size(), [&](std::size_t i) {
    Outcome& one = out[i];
    const std::string name = one.name;
    const auto known = nodes.find(name);
    if (known != nodes.end() && !known->second.jobs.empty()) {
      one.good = false;
      one.text = fmt::format(
          "jobs use it: {}; end them, or move them with 'muster node drain {} "
          "--deadline 0s', then run it again",
          fmt::join(known->second.jobs, ", "), name);
      crew.progress(name, one.text);
      return;
    }
    const Deployed& deployed = manifest.agents.at(name);
    const bool programs = !same_prefix(deployed, manifest.controller);
    one = remove_agent(name, deployed, {.programs = programs, .forget = true}, crew);
    if (!one.good) return;
    if (auto done = take_out(controller, name, known != nodes.end()); !done) {
      one.good = false;
      one.text = done.error().message;
      crew.progress(name, one.text);
    }
  });
  for (const Outcome& one : out)
    if (one.good) manifest.agents.erase(one.name);
  return out;
}

}  // namespace muster::rollout
