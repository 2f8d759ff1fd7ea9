// The step Fetch of a start.
#include <fmt/format.h>

#include <algorithm>

#include "agent/launch/disk_view.h"
#include "agent/start/start_work.h"
#include "common/engine/model/layout.h"

namespace muster::agent {
namespace {

// True if an earlier start has fetched it: the ranks' files of that step, each of which was moved
// there complete.
bool lies_here(const StartWork& work, const v1::Fetch& what) {
  if (what.layout().empty() || what.only().empty()) return false;
  const auto layout = engine::make_layout(what.layout());
  if (!layout) return false;
  const InReach reach(reach_of(work.order, work.owner()));
  const engine::LinkPlan plan =
      (*layout)->resume_links(DiskView(nullptr, &reach), what.path(), what.step());
  return std::ranges::all_of(what.only(), [&](const std::string& rank) {
    return std::ranges::any_of(
        plan.links, [&](const auto& link) { return link.first.starts_with(rank + "/"); });
  });
}

}  // namespace

StepResult step_fetch(StartWork& work) {
  for (int number = 0; number < work.order.fetches_size(); ++number) {
    const v1::Fetch& what = work.order.fetches(number);
    work.progress->next_part(fetch_text(work.order, what));
    if (work.abandoned && work.abandoned()) return {};
    if (lies_here(work, what)) continue;
    if (!work.fetch)
      return std::unexpected(
          refusal_of({ErrorCode::Unsupported,
                      fmt::format("fetching '{}' from node '{}': this agent fetches nothing",
                                  what.path(), what.node())}));
    if (auto fetched = work.fetch(work.order, number, work.owner()); !fetched)
      return std::unexpected(refusal_of(fetched.error()));
  }
  return {};
}

}  // namespace muster::agent
