// prepare_container() prepares a run in a container before its worker is started: podman or docker,
// the image, the mounts, and from these the command. It keeps no state. It blocks as long as a
// registry takes, on the thread of one start.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/container/container_image.h"
#include "agent/container/container_tool.h"
#include "agent/launch/launch_record.h"
#include "common/base/error.h"
#include "common/rundir/layout.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::agent {

struct PreparedContainer {
  rundir::v1::ContainerLaunch launch;
  std::vector<std::string> env;  // the image's own variables
};

// How long loading or pulling the image may take: runtime.setup.timeout, or 30 minutes.
std::chrono::milliseconds image_time(const v1::NodeLaunch& order);

// The directories that the order makes must exist. The errors fit failure_of(): those of
// ready_image(), Unsatisfiable (no tool), NotFound (a mount's source is missing).
Result<PreparedContainer> prepare_container(const v1::NodeLaunch& order,
                                            const ContainerOptions& options,
                                            const LaunchContext& context,
                                            const ImageFetch& fetching);

}  // namespace muster::agent
