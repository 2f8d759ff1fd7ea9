// A job's image on this node: there already, loaded from a file, or pulled from a registry, by one
// start at a time. Blocking, as long as a registry takes; any thread.
//
// A file's image is kept under localhost/muster-image:<hash of path, inode, size and time of
// change>, so that it is loaded once and again when the file is another. `podman save`'s and
// `docker save`'s archives are loaded; a plain tar of a root file system is imported.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "agent/host/container_tool.h"
#include "agent/host/image_progress.h"
#include "common/base/error.h"

namespace muster::agent {

struct ContainerImage {
  std::string id;
  std::vector<std::string> env;  // NAME=value, of the image's own configuration
};

// What the starts of a node share when they bring images, and what this one tells of its own
// meanwhile.
struct ImageFetch {
  std::shared_ptr<ImageTurns> turns = std::make_shared<ImageTurns>();
  std::shared_ptr<ImageNews> news = std::make_shared<ImageNews>();
};

// Errors: NotFound, NotAllowed, InvalidArgument: the job's fault, on any node; Io, TimedOut,
// Unreachable: this node's, or this moment's. One that another start met is not this one's: it
// tries for itself.
Result<ContainerImage> ready_image(const ContainerTool& tool, const std::string& image,
                                   std::chrono::milliseconds most, const ImageFetch& fetching = {});

// What `load` says it has loaded, in order.
std::vector<std::string> loaded_images(const std::string& output);
// The two lines of `image inspect` that ready_image() asks for.
Result<ContainerImage> parse_image(const std::string& inspected);

}  // namespace muster::agent
