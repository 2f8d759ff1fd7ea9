#include "deploy/rollout/compare.h"

#include <utility>

#include "deploy/rollout/controller_host.h"
#include "deploy/rollout/foreign.h"
#include "deploy/rollout/left_over.h"
#include "deploy/rollout/loopback.h"
#include "deploy/rollout/moved.h"
#include "deploy/rollout/revoked.h"

namespace muster::rollout {
namespace {

void ask_controller(ControllerHost& controller, const std::optional<Manifest>& manifest,
                    std::vector<Surveyed>& surveyed, Comparison& out) {
  const auto revoked = read_revoked(controller);
  if (!revoked) {
    out.trouble = revoked.error().message;
    return;
  }
  for (Surveyed& one : surveyed) mark_revoked(one, *revoked);
  if (!manifest) return;
  const auto nodes = controller.nodes();
  if (!nodes) {
    out.trouble = nodes.error().message;
    return;
  }
  mark_renamed(surveyed, *manifest, *nodes);
}

}  // namespace

Comparison compare(std::vector<Surveyed>& surveyed, const std::string& cluster) {
  Comparison out;
  Surveyed& first = surveyed.front();
  if (first.error) return out;  // the survey says why
  mark_foreign(surveyed);
  mark_loopback(surveyed);
  ControllerHost controller(std::move(*first.host), first.check.places);
  auto manifest = controller.read_manifest();
  if (!manifest) {
    out.trouble = manifest.error().message;
    return out;
  }
  if (std::string why = why_not_deployed_by(cluster, *manifest ? &**manifest : nullptr,
                                            first.check.running, first.check.places);
      !why.empty()) {
    first.findings.push_back({.stops = true, .text = std::move(why)});
    return out;
  }
  if (*manifest)
    for (Surveyed& one : surveyed) mark_moved(one, **manifest);
  if (first.check.running) ask_controller(controller, *manifest, surveyed, out);
  if (*manifest) out.left = left_over(**manifest, surveyed);
  return out;
}

}  // namespace muster::rollout
