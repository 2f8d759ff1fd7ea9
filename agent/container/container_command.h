// Functions that build `podman run ...` or `docker run ...` for one run of this node, and that
// interpret its mounts. All but is_nodes_own() are pure; is_nodes_own() calls stat(2). They keep no
// state.
//
// The worker is the entry point, at its own path. The container shares the node's process numbers,
// network and IPC. So run directory, logs, records and adoption are the same as for a run without a
// container.
//
// These are mounted, in this order:
//
// - the run directory, and the worker (read-only);
// - the mounts of the order: the job's own ones, and code.at if the node has it;
// - what the agent makes for the job (output and save directories), and the checkpoint that the job
//   resumes from;
// - those of the vendors' files that exist on the node.
//
// All but the job's own mounts and one of the vendors' are at their path on the node. If two mounts
// have the same target, the first one wins: a job's own mount comes before a vendor's.
//
// Ascend (source: the vendor's installation guides): all /dev/davinci<N> of the node,
// davinci_manager, devmm_svm, hisi_hdc, driver, tools, npu-smi, logs at /usr/slog. The container
// gets all cards of the node, not only the job's. With fewer cards the driver would count from 0
// again. DEVICE_ID, ASCEND_RT_VISIBLE_DEVICES and rank tables have the node's numbers. By them a
// job uses its own cards, as it does without a container.
//
// NVIDIA: --gpus all for docker, nvidia.com/gpu=all of CDI for podman. CUDA_VISIBLE_DEVICES chooses
// by the node's numbers, for the same reason.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/container/container_tool.h"
#include "muster/rundir/v1/rundir.pb.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct ContainerLimit {
  std::string name;                  // nofile
  std::uint64_t soft = 0, hard = 0;  // UINT64_MAX: unlimited
};

// What the node has and what it allows, probed before.
struct ContainerNode {
  std::vector<std::string> cards;  // /dev/davinci0 ...
  // those of probed_paths(), and of the order's mounts without a target, that exist
  std::set<std::string> there;
  std::vector<ContainerLimit> limits;
  std::string user;  // numbers: "0:0"
};
std::span<const std::string_view> probed_paths();

struct ContainerRun {
  std::string name;         // of the container
  std::string image;        // its id
  std::string process_tag;  // value of MUSTER_PROCESS_TAG
  std::string worker;       // absolute, like `directory`
  std::string directory;    // of the run
};

// Errors (InvalidArgument): a mount is impossible; the job's fault.
Result<std::vector<std::string>> container_command(const v1::NodeLaunch& order,
                                                   const ContainerTool& tool,
                                                   const ContainerNode& node,
                                                   const ContainerRun& run);

// muster-<first 8 characters of cluster>-<node>-<job>-<attempt>. Characters that a container's name
// may not have become '-'.
std::string container_name(const std::string& cluster, const std::string& node,
                           const std::string& job, std::uint32_t attempt);

// Where `path` in the container is on the node, according to the mounts of its command: at
// `source`, or at `rest` below it ("/a/log"; "" means at `source`). Empty result: the path belongs
// to the container alone.
struct MountedFrom {
  std::string source, rest;
};
std::optional<MountedFrom> mounted_from(const rundir::v1::ContainerLaunch& container,
                                        std::string_view path);

// Where the mounts of its command are on the node.
std::vector<std::string> mount_sources(const rundir::v1::ContainerLaunch& container);

// True if the order's ranks find at `path` what the node has there: the path is in code.at, which
// exists on the node, and no other mount covers it.
bool is_nodes_own(const v1::NodeLaunch& order, const std::string& path);

}  // namespace muster::agent
