// Which address, interface and ports of a node collective communication uses, and the HCCL
// variables that a spec may set wrongly. Pure.
//
// Collectives use the node's training address (PlacedNode::address) and its interface
// (PlacedNode::interface). They are those of network.interface if the spec names one. Otherwise the
// placement chooses them by the route to the first node
// (controller/core/placement/training_route.h).
//
// HCCL by itself takes the first interface by name. Gloo takes the address that the host name
// resolves to. On a node with two networks both guesses may be wrong. NCCL by itself uses all
// interfaces that look useful, so muster restricts NCCL only if the spec names an interface.
#pragma once

#include "common/engine/model/rows.h"

namespace muster::engine {

inline constexpr const char* kHcclBasePort = "HCCL_IF_BASE_PORT";

// Values that the spec itself sets are not changed.
//   Ascend   HCCL_IF_IP (with HCCL_SOCKET_FAMILY for IPv6), and HCCL_SOCKET_IFNAME if the spec
//            names an interface; neither if the spec sets HCCL_IF_IP or HCCL_SOCKET_IFNAME itself,
//            because HCCL_IF_IP would hide HCCL_SOCKET_IFNAME
//   NVIDIA   NCCL_SOCKET_IFNAME if the spec names an interface
//   any      GLOO_SOCKET_IFNAME if the interface is known
void put_host_network(const LaunchRequest& request, RankPlan& rank, const char* source);
// Sets only the variables of the line "Ascend".
void put_hccl_address(const LaunchRequest& request, RankPlan& rank, const char* source);
// Sets HCCL_IF_BASE_PORT on Ascend nodes that have ports for it.
void put_hccl_port(const LaunchRequest& request, RankPlan& rank, const char* source);

// Checks ranges that HCCL (for HCCL_EVENT_TIMEOUT torch_npu) itself refuses, in runtime.env and
// resume.env. Otherwise EI0001 appears in the ranks' logs. Sources: hicann/hccl
// docs/zh/user_guide/hccl_env; Ascend/pytorch docs/zh/api/environment_variable.
void check_hccl_variables(const v1::JobSpec& spec, Problems& problems);

// Refuses resources.devices that are not in ascending order. Ascend's runtime numbers the devices
// of ASCEND_RT_VISIBLE_DEVICES upwards, regardless of their order in the list.
void check_ascending(const v1::JobSpec& spec, Problems& problems);

}  // namespace muster::engine
