// Which cores are a rank's own: those of the NUMA node that its device hangs on, divided evenly
// between the ranks that share the node, whole cores with all of their threads. A rank with several
// devices gets its part at each; a rank of which one device has no known NUMA node gets none, and
// runs where it likes.
//
//   /sys/devices/system/node/nodeN/cpulist                          processors of a NUMA node
//   /sys/devices/system/cpu/cpuC/topology/thread_siblings_list      those of one core
//
// Of both, only what the agent itself may run on: a container's cpuset, taskset.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "common/process/cpu_list.h"
#include "muster/rundir/v1/rundir.pb.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

using NumaNodes = std::map<std::uint32_t, std::uint32_t>;  // of devices
// cores of a NUMA node, by their first processor
using NumaCores = std::map<std::uint32_t, std::vector<process::CpuList>>;

// Nodes that `sys` does not know, or where nothing is allowed, have no cores. Reads files; any
// thread.
NumaCores read_cores(const std::filesystem::path& sys, const NumaNodes& devices,
                     const process::CpuList& allowed);

// By place in order.ranks; empty: not bound. Where there are fewer cores than ranks these share
// them all. Pure.
std::vector<process::CpuList> share_cores(const v1::NodeLaunch& order, const NumaNodes& devices,
                                          const NumaCores& cores);

// Both, into the launch record. What cannot be found out binds nobody.
void bind_ranks(rundir::v1::Launch& launch, const v1::NodeLaunch& order, const NumaNodes& devices,
                const std::filesystem::path& sys);

}  // namespace muster::agent
