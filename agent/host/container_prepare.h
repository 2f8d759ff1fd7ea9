// What a run in a container needs before its worker is started: podman or docker, the image, what
// is to be mounted, and from these the command. Blocking, as long as a registry takes; on a start's
// own thread.
#pragma once

#include <string>
#include <vector>

#include "agent/host/container_image.h"
#include "agent/host/container_tool.h"
#include "agent/host/launch_record.h"
#include "common/base/error.h"
#include "common/rundir/layout.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::agent {

struct PreparedContainer {
  rundir::v1::ContainerLaunch launch;
  std::vector<std::string> env;  // the image's own variables
};

// The directories that the order makes are there. Errors as of failure_of(): those of
// ready_image(), Unsatisfiable (no tool), NotFound (what is to be mounted).
Result<PreparedContainer> prepare_container(const v1::NodeLaunch& order,
                                            const ContainerOptions& options,
                                            const LaunchContext& context,
                                            const ImageFetch& fetching);

}  // namespace muster::agent
