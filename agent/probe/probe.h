// The devices of this node, their health and the strangers on them: asks the vendors' tools within
// bounds of time, or takes what was written down. Blocks for `total` and a moment at most, whatever
// the tools do: for a thread of its own, at the start and then for health. One probe at a time. No
// tool at all: CPU slots. A tool that is there and fails: no devices and a finding, for a node
// whose cards cannot be seen must not get their jobs as CPU slots.
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

// Where drivers put their tools when nobody puts them on PATH (a service's PATH is short).
inline constexpr const char* kVendorPlaces =
    "/usr/local/sbin:/usr/local/bin:/usr/bin:/usr/local/Ascend/driver/tools";

// PATH of this process, then the vendors' places.
std::string tool_path();

struct ProbeOptions {
  // these and no tool is asked; NUMA nodes are filled in where they are missing
  std::optional<std::vector<Device>> fixed;
  std::optional<std::uint32_t> slots;  // so many CPU slots and no tool is asked
  std::uint32_t cores = 1;             // CPU slots where there is no tool
  std::string path;                    // where the tools are, "/a:/b"; empty: tool_path()
  std::chrono::milliseconds each{5000};
  std::chrono::milliseconds total{20'000};
  std::size_t parallel = 4;
  std::filesystem::path hccn_conf = "/etc/hccn.conf";
  std::filesystem::path sys = "/sys";
  std::shared_ptr<OwnProcesses> own;  // what muster runs here; none: nothing
  // pids here are the machine's own (occupants.h); nothing: looked up
  std::optional<bool> sees_all;
  int cancel_fd = -1;  // readable: end it, nobody waits for what it finds
};

struct Probed {
  std::vector<Device> devices;        // by id
  std::vector<std::string> findings;  // a sentence each, no full stop
};

// `tools`: the same one at every call, so that a program which the kernel holds is not started
// again and again.
Probed probe_devices(process::ToolRunner& tools, const ProbeOptions& options);

}  // namespace muster::agent::probe
