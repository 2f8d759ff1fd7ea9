// `podman run ...` or `docker run ...` for one run of this node: a function of values. The worker
// is the entry point, at its own path, in a container with the node's process numbers, network and
// IPC, so that run directory, logs, records and adoption are those of a run without one.
//
// Mounted where they are on the node: the run directory, the worker (read-only), what the agent
// makes for the job (output and save directories), the checkpoint that it resumes from, and code.at
// where the node has it; then the job's own mounts, and of the vendors' what is there. A target
// that is taken stays with the first of these that has it: a job's own mount goes before a
// vendor's.
//
// Ascend (the vendor's installation guides): all /dev/davinci<N> of the node, davinci_manager,
// devmm_svm, hisi_hdc, driver, tools, npu-smi, logs at /usr/slog. All of the node's cards, not the
// job's alone: in a container that has fewer the driver counts from 0 again, and DEVICE_ID,
// ASCEND_RT_VISIBLE_DEVICES and rank tables say the node's numbers, by which a job uses its own
// cards, as it does without a container.
// NVIDIA: --gpus all, or nvidia.com/gpu=all of CDI for podman; CUDA_VISIBLE_DEVICES chooses, by the
// node's numbers for the same reason.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/container_tool.h"
#include "muster/rundir/v1/rundir.pb.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct ContainerLimit {
  std::string name;                  // nofile
  std::uint64_t soft = 0, hard = 0;  // UINT64_MAX: unlimited
};

// What the node has and may, looked up before.
struct ContainerNode {
  std::vector<std::string> cards;  // /dev/davinci0 ...
  // of probed_paths(), and of the order's mounts without a target
  std::set<std::string> there;
  std::vector<ContainerLimit> limits;
  std::string user;  // numbers: "0:0"
};
std::span<const std::string_view> probed_paths();

struct ContainerRun {
  std::string name;         // of the container
  std::string image;        // its id
  std::string process_tag;  // value of MUSTER_PROCESS_TAG
  std::string worker;       // absolute, both
  std::string directory;    // of the run
};

// Errors (InvalidArgument): a mount that cannot be; the job's fault.
Result<std::vector<std::string>> container_command(const v1::NodeLaunch& order,
                                                   const ContainerTool& tool,
                                                   const ContainerNode& node,
                                                   const ContainerRun& run);

// muster-<cluster, 8 of it>-<node>-<job>-<attempt>, as a container may be called.
std::string container_name(const std::string& cluster, const std::string& node,
                           const std::string& job, std::uint32_t attempt);

// What is at `path` in the container is on the node, by the mounts of its command: `rest` ("", or
// "/a/log") below `source`, or at it. Nothing: it is the container's own.
struct MountedFrom {
  std::string source, rest;
};
std::optional<MountedFrom> mounted_from(const rundir::v1::ContainerLaunch& container,
                                        std::string_view path);

// Whether the order's ranks find at `path` what is there on the node: it is in code.at, which the
// node has, and no other mount is over it.
bool is_nodes_own(const v1::NodeLaunch& order, const std::string& path);

}  // namespace muster::agent
