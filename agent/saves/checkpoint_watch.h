// CheckpointWatch records which checkpoints one run's save directory holds, and which of them are
// new. The run's PublishedRun (agent/logs/published_run.h) owns it and locks.
//
//   - SaveDir is the directory to scan. Its methods read the disk: on a network file system they
//     may take long or never return. They therefore run on a scan thread (scan_threads.h).
//   - CheckpointWatch does no I/O and is cheap.
//   - Only the layout decides which checkpoint is complete (common/engine/model/layout.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/engine/model/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// Plain value: each scan thread has its own copy.
struct SaveDir {
  static constexpr std::size_t kNewest = 2;      // steps that one scan reads
  static constexpr std::size_t kDirsMost = 128;  // directories watched below the save directory

  std::shared_ptr<const engine::CheckpointLayout> layout;
  std::string path;

  [[nodiscard]] std::vector<engine::FoundCheckpoint> scan(const engine::FileView& files) const {
    return layout->scan(files, path, kNewest);
  }
  [[nodiscard]] std::string unknown(const engine::FileView& files,
                                    const std::vector<engine::FoundCheckpoint>& found) const {
    return engine::unknown_file(*layout, files, path, found);
  }
  // Returns the directories in which a change may mean a new finished shard: the save directory and
  // those of the newest steps.
  [[nodiscard]] std::set<std::string> dirs(const engine::FileView& files,
                                           const std::vector<engine::FoundCheckpoint>& found) const;
};

class CheckpointWatch {
 public:
  // Errors: the layout is unknown. Returns null if the run saves no checkpoints.
  static Result<std::unique_ptr<CheckpointWatch>> make(const v1::Watching& watching);

  [[nodiscard]] const SaveDir& save_dir() const { return save_dir_; }

  // Returns true if one more shard is finished or one more checkpoint is sealed. Steps that changed
  // get `mark`.
  bool accept(std::vector<engine::FoundCheckpoint> found, std::uint64_t mark);
  // Takes from the same scan a file that belongs to no checkpoint of the layout; empty means none.
  // The file is reported after it has existed for a while, or if the scan is the last one. The
  // reason: an engine may first write a file that it renames later.
  void accept_unknown(std::string file, BootTime now, bool last);
  // Adds every shard of the steps that changed after `since`.
  void fill(v1::AttemptReading& reading, std::uint64_t since) const;

 private:
  struct Known {
    engine::FoundCheckpoint checkpoint;
    std::uint64_t mark = 0;
  };
  explicit CheckpointWatch(SaveDir save_dir) : save_dir_(std::move(save_dir)) {}
  const SaveDir save_dir_;
  std::map<std::int64_t, Known> known_;
  std::string unknown_;  // the file that is reported
  std::optional<BootTime> unknown_since_ = {};
};

}  // namespace muster::agent
