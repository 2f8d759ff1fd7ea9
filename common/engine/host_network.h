// Which of a node's addresses and interfaces collectives use, and the variables of HCCL that a spec may set wrongly. Pure.
//
// The rule: the node's training address (NodeSlot::address) and the interface that has it (NodeSlot::interface). HCCL by itself takes the first
// interface by name, Gloo whatever the host name resolves to; on a node with two networks both guesses may be wrong.
#pragma once

#include "common/engine/rows.h"

namespace muster::engine {

// HCCL_IF_IP on Ascend nodes (with HCCL_SOCKET_FAMILY for IPv6), not beside HCCL_IF_IP or HCCL_SOCKET_IFNAME of the spec: the first would hide the second.
void put_hccl_address(const LaunchRequest& request, RankPlan& rank, const char* source);
// GLOO_SOCKET_IFNAME where the interface is known and the spec says nothing.
void put_gloo_interface(const LaunchRequest& request, RankPlan& rank, const char* source);

// Ranges that HCCL (and torch_npu for HCCL_EVENT_TIMEOUT) itself refuses, in runtime.env and resume.env: EI0001 in the ranks' logs otherwise.
// hicann/hccl docs/zh/user_guide/hccl_env; Ascend/pytorch docs/zh/api/environment_variable.
void check_hccl_variables(const v1::JobSpec& spec, Problems& problems);

// Ascend's runtime numbers what ASCEND_RT_VISIBLE_DEVICES shows upwards, whatever its order.
void check_ascending(const v1::JobSpec& spec, Problems& problems);

}  // namespace muster::engine
