#include "common/engine/ascend/plog.h"

#include <fmt/format.h>

namespace muster::engine {

void put_plog(Launching& launching, const Engine& engine) {
  const LaunchRequest& request = launching.request;
  const v1::ObserveSpec& observe = request.spec->observe();
  if (observe.has_plog() && !observe.plog()) return;
  for (RankPlan& rank : launching.plan.ranks) {
    const bool writes_one =
        engine.hccl && is_ascend(device_type(request, request.nodes[rank.node]));
    if ((!writes_one && !observe.plog()) || rank.env.contains(std::string(kProcessLogPath)))
      continue;
    rank.plog_dir = fmt::format("plog/rank-{}", rank.rank);
    put(rank.env, kProcessLogPath.data(), fmt::format("{}/{}", kRunDirectory, rank.plog_dir),
        "observe.plog");
  }
}

bool is_the_nodes(const RankPlan& rank, std::string_view variable) {
  return !rank.plog_dir.empty() && variable == kProcessLogPath;
}

}  // namespace muster::engine
