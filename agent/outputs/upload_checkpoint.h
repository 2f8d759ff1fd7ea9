// Uploads a checkpoint of a job that goes on. Plain functions, on the thread of an upload; they
// block.
#pragma once

#include <vector>

#include "agent/outputs/frozen_checkpoint.h"
#include "agent/outputs/send_files.h"

namespace muster::agent {

// As in v1.NodeSums.
struct NodeSums {
  std::string node, sha256;
  friend auto operator<=>(const NodeSums&, const NodeSums&) = default;
};

// Its files on this node, which were frozen, and then the list of their sums. One that is gone, or
// that is written meanwhile, is a problem.
Uploaded upload_checkpoint(const UploadWork& work, const CheckpointPlace& place,
                           const CheckpointFiles& files);

// What says that it is whole: the list of `sums`, and the engine's own mark, if its layout has one.
Uploaded upload_seal(const UploadWork& work, const CheckpointPlace& place,
                     const std::vector<NodeSums>& sums);

}  // namespace muster::agent
