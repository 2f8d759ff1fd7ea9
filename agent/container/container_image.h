// ready_image() provides a job's image on this node: it is already there, is loaded from a file, or
// is pulled from a registry. It keeps no state; one start at a time loads or pulls an image. It
// blocks as long as a registry takes, and may run on any thread.
//
// The image of a file is kept as localhost/muster-image:<hash of path, inode, size and modification
// time>. So it is loaded once, and again if the file changes. Archives of `podman save` and `docker
// save` are loaded. A plain tar of a root file system is imported.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "agent/container/container_tool.h"
#include "agent/container/image_progress.h"
#include "common/base/error.h"

namespace muster::agent {

struct ContainerImage {
  std::string id;
  std::vector<std::string> env;  // NAME=value, of the image's own configuration
};

// What the starts of a node share when they fetch images, and what this start reports of its own
// image meanwhile.
struct ImageFetch {
  std::shared_ptr<ImageTurns> turns = std::make_shared<ImageTurns>();
  std::shared_ptr<ImageNews> news = std::make_shared<ImageNews>();
};

// Errors:
//
// - NotFound, NotAllowed, InvalidArgument: the job's fault, on any node.
// - Io, TimedOut, Unreachable: a problem of this node, or of this moment.
//
// An error of another start is not returned here: this start tries for itself.
Result<ContainerImage> ready_image(const ContainerTool& tool, const std::string& image,
                                   std::chrono::milliseconds most, const ImageFetch& fetching = {});

// The images that the output of `load` says are loaded, in order.
std::vector<std::string> loaded_images(const std::string& output);
// Parses the two lines of `image inspect` that ready_image() requests.
Result<ContainerImage> parse_image(const std::string& inspected);

}  // namespace muster::agent
