// A checkpoint of a job in the store of its outputs, by the lists of its files that are there
// (common/store/sums.h). Plain functions, on the thread of an upload; they block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/outputs/send_files.h"
#include "common/base/error.h"
#include "common/engine/model/layout.h"

namespace muster::agent {

struct StoredCheckpoint {
  std::string dir;  // its save directory, below the URL
  std::int64_t step = 0;
};

// Before files of it are written there: whoever reads takes it for a whole one no more. If that
// cannot be done, it is logged.
void unseal(const UploadWork& work, const StoredCheckpoint& checkpoint);
// The same for all checkpoints below this directory that have one of these files. Of other nodes'
// lists none is looked at if they write there too.
void unseal_all(const UploadWork& work, const std::string& dir,
                const std::vector<std::string>& names);

// First the list of its lists gets another name (`.muster/step-240.removed`), so that no reader
// takes it for whole; then the files go that its lists have, and nothing else. `with_mark`: and the
// engine's mark. One without such a list is removed already. Errors: DataLoss: a list is none;
// Unreachable, with what rclone says.
Result<void> remove_checkpoint(const UploadWork& work, const StoredCheckpoint& checkpoint,
                               const engine::CheckpointLayout& layout, bool with_mark);

}  // namespace muster::agent
