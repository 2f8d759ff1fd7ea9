#include "common/engine/ascend/core_binding.h"

#include <algorithm>
#include <array>

#include "common/engine/model/rows.h"

namespace muster::engine {
namespace {

constexpr std::array<const char*, 3> kOthersBindings = {"CPU_AFFINITY_CONF", "GOMP_CPU_AFFINITY",
                                                        "KMP_AFFINITY"};

}  // namespace

bool binds_cores(const LaunchRequest& request, const LaunchPlan& plan, std::size_t node) {
  const v1::JobSpec& spec = *request.spec;
  const Engine* engine = find_engine(spec.engine());
  if (engine == nullptr || engine->any_program || spec.launch().per() != v1::LAUNCH_PER_RANK)
    return false;
  const std::string_view type = device_type(request, request.nodes[node]);
  if (!is_ascend(type) && type != "nvidia") return false;
  return std::ranges::none_of(plan.ranks, [node](const RankPlan& rank) {
    return rank.node == node && std::ranges::any_of(kOthersBindings, [&rank](const char* name) {
             return rank.env.contains(name);
           });
  });
}

}  // namespace muster::engine
