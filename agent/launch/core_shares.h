// Functions that give each rank its own cores, near its devices. share_cores() is pure; the others
// read files and may run on any thread. They keep no state.
//
// The ranks whose devices are on the same NUMA node share the cores of that node evenly. A rank
// gets whole cores with all their threads. A rank with several devices gets its part at each
// device. A rank with a device whose NUMA node is unknown gets no cores, and may run on any.
//
//   /sys/devices/system/node/nodeN/cpulist                          processors of a NUMA node
//   /sys/devices/system/cpu/cpuC/topology/thread_siblings_list      those of one core
//
// Of both, only those count on which the agent itself may run (a container's cpuset, taskset).
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
// cores of a NUMA node, sorted by their first processor
using NumaCores = std::map<std::uint32_t, std::vector<process::CpuList>>;

// Nodes that are not in `sys`, or without an allowed processor, have no cores. Reads files; may run
// on any thread.
NumaCores read_cores(const std::filesystem::path& sys, const NumaNodes& devices,
                     const process::CpuList& allowed);

// One entry per index in order.ranks; empty: not bound. If there are fewer cores than ranks, each
// of these ranks gets all cores. Pure.
std::vector<process::CpuList> share_cores(const v1::NodeLaunch& order, const NumaNodes& devices,
                                          const NumaCores& cores);

// Reads the cores, shares them, and writes the result into the launch record. If something cannot
// be found out, ranks stay unbound.
void bind_ranks(rundir::v1::Launch& launch, const v1::NodeLaunch& order, const NumaNodes& devices,
                const std::filesystem::path& sys);

}  // namespace muster::agent
