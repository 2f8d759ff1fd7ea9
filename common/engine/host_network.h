// Which of a node's addresses, interfaces and ports collectives use, and the variables of HCCL that
// a spec may set wrongly. Pure.
//
// The rule: the node's training address (NodeSlot::address) and its interface
// (NodeSlot::interface), which are those of network.interface where the spec names one; else the
// placement has chosen them, by the way to the first node (controller/core/training_route.h). HCCL
// by itself takes the first interface by name, Gloo whatever the host name resolves to; on a node
// with two networks both guesses may be wrong. NCCL's own guess spreads over all that look useful,
// so that only a spec that names one narrows it down.
#pragma once

#include "common/engine/rows.h"

namespace muster::engine {

inline constexpr const char* kHcclBasePort = "HCCL_IF_BASE_PORT";

// Whatever the spec says itself stands.
//   Ascend   HCCL_IF_IP (with HCCL_SOCKET_FAMILY for IPv6), and HCCL_SOCKET_IFNAME where the spec
//            names an interface; neither beside HCCL_IF_IP or HCCL_SOCKET_IFNAME of the spec: the
//            first would hide the second
//   NVIDIA   NCCL_SOCKET_IFNAME where the spec names an interface
//   any      GLOO_SOCKET_IFNAME where the interface is known
void put_host_network(const LaunchRequest& request, RankPlan& rank, const char* source);
// The first of these alone.
void put_hccl_address(const LaunchRequest& request, RankPlan& rank, const char* source);
// HCCL_IF_BASE_PORT on Ascend nodes that have been given ports for it.
void put_hccl_port(const LaunchRequest& request, RankPlan& rank, const char* source);

// Ranges that HCCL (and torch_npu for HCCL_EVENT_TIMEOUT) itself refuses, in runtime.env and
// resume.env: EI0001 in the ranks' logs otherwise. hicann/hccl docs/zh/user_guide/hccl_env;
// Ascend/pytorch docs/zh/api/environment_variable.
void check_hccl_variables(const v1::JobSpec& spec, Problems& problems);

// Ascend's runtime numbers what ASCEND_RT_VISIBLE_DEVICES shows upwards, whatever its order.
void check_ascending(const v1::JobSpec& spec, Problems& problems);

}  // namespace muster::engine
