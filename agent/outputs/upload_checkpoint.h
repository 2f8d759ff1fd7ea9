// Uploads a checkpoint of a job that goes on. Plain functions, on the thread of an upload; they
// block.
#pragma once

#include "agent/outputs/frozen_checkpoint.h"
#include "agent/outputs/send_files.h"

namespace muster::agent {

// Its files on this node, which were frozen. One that is gone, or that is written meanwhile, is a
// problem.
Uploaded upload_checkpoint(const UploadWork& work, const CheckpointFiles& files);

// The engine's own mark that it is whole; 0 files: its layout has none.
Uploaded upload_seal(const UploadWork& work, const CheckpointPlace& place);

}  // namespace muster::agent
