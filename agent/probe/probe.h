// Finds the devices of this node, their health and the foreign processes on them. A Prober calls
// probe_devices() on its own thread, one probe at a time. It blocks for at most `total` and a
// moment, whatever the tools do.
//
// It runs the vendors' tools within bounds of time, or takes the devices that an operator wrote
// down.
//   - If there is no tool at all, the devices are CPU slots.
//   - If a tool exists and fails, there are no devices and a finding. A node whose cards cannot be
//     seen must not get jobs on CPU slots.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/probe/device.h"
#include "agent/probe/own_processes.h"
#include "common/process/tool.h"

namespace muster::agent::probe {

// Directories of the drivers' tools, for a PATH without them (a service's PATH is short).
inline constexpr const char* kVendorPlaces =
    "/usr/local/sbin:/usr/local/bin:/usr/bin:/usr/local/Ascend/driver/tools";

// PATH of this process, then the vendors' directories.
std::string tool_path();

struct ProbeOptions {
  // Use these devices and call no tool. Missing NUMA nodes are filled in.
  std::optional<std::vector<Device>> fixed;
  std::optional<std::uint32_t> slots;  // use this number of CPU slots and call no tool
  std::uint32_t cores = 1;             // CPU slots if there is no tool
  std::string path;                    // directories of the tools, "/a:/b"; empty: tool_path()
  std::chrono::milliseconds each{5000};
  std::chrono::milliseconds total{20'000};
  std::size_t parallel = 4;
  std::filesystem::path hccn_conf = "/etc/hccn.conf";
  std::filesystem::path sys = "/sys";
  std::shared_ptr<OwnProcesses> own;  // muster's own processes; null: none
  // Pids here are the machine's own (occupants.h). Empty: find out.
  std::optional<bool> sees_all;
  int cancel_fd = -1;  // if readable, end the probe: the result is not needed
};

struct Probed {
  std::vector<Device> devices;        // by id
  std::vector<std::string> findings;  // sentences, without a full stop
};

// Pass the same `tools` at every call, so that a program that hangs in the kernel is not started
// again and again.
Probed probe_devices(process::ToolRunner& tools, const ProbeOptions& options);

}  // namespace muster::agent::probe
