#include "controller/core/placement/placed_table.h"

#include "common/engine/ranktable/table_text.h"

namespace muster::core {

engine::NodeSlot slot_of(const PlacedNode& placed) {
  return {.name = placed.node.str(),
          .address = placed.address,
          .devices = placed.devices,
          .first_rank = placed.first_rank.value,
          .rank_count = placed.rank_count,
          .device_type = placed.device_type,
          .interface = placed.interface,
          .device_model = placed.device_model,
          .physical_ids = placed.physical_ids,
          .device_ips = placed.device_ips,
          .super_device_ids = placed.super_device_ids,
          .super_pod_id = placed.super_pod_id,
          .server_id = placed.server_id,
          .hccl_port = placed.hccl_port};
}

std::string table_sha256(const v1::JobSpec& spec, AttemptNo attempt,
                         std::span<const PlacedNode> nodes) {
  engine::LaunchRequest request{.spec = &spec, .attempt = attempt.value};
  request.nodes.reserve(nodes.size());
  for (const PlacedNode& placed : nodes) request.nodes.push_back(slot_of(placed));
  const auto table = engine::plan_table(request);
  return table && *table != nullptr ? (*table)->hash : std::string();
}

}  // namespace muster::core
