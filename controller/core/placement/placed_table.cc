#include "controller/core/placement/placed_table.h"

#include "common/engine/ranktable/table_text.h"

namespace muster::core {

std::string table_sha256(const v1::JobSpec& spec, AttemptNo attempt,
                         std::span<const PlacedNode> nodes) {
  const engine::LaunchRequest request{
      .spec = &spec, .attempt = attempt.value, .nodes = {nodes.begin(), nodes.end()}};
  const auto table = engine::plan_table(request);
  return table && *table != nullptr ? (*table)->hash : std::string();
}

}  // namespace muster::core
