// One run's save directory: which checkpoints are there, what of them is new. SaveDir's looks read
// the disk, may take long on a network file system or never come back, and belong on a thread of
// their own; CheckpointWatch is pure and cheap, under Watch's lock. What is whole is the layout's
// word alone (common/engine/layout.h).
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
#include "common/engine/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// A value: a thread that looks has its own copy.
struct SaveDir {
  static constexpr std::size_t kNewest = 2;      // steps looked at
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
  // Directories where a change may mean a new finished shard: the save directory and those of the
  // newest steps.
  [[nodiscard]] std::set<std::string> dirs(const engine::FileView& files,
                                           const std::vector<engine::FoundCheckpoint>& found) const;
};

class CheckpointWatch {
 public:
  // Errors: an unknown layout. Nothing: there are no checkpoints to look for.
  static Result<std::unique_ptr<CheckpointWatch>> make(const v1::Watching& watching);

  [[nodiscard]] const SaveDir& save_dir() const { return save_dir_; }

  // True: a shard more is finished, or a checkpoint sealed. Steps that changed get `mark`.
  bool accept(std::vector<engine::FoundCheckpoint> found, std::uint64_t mark);
  // Of the same look: a file of no checkpoint that the layout knows, or empty. It is told when it
  // has been there for a while, or is there at the end: a saver may begin with a file that it
  // renames.
  void accept_unknown(std::string file, BootTime now, bool last);
  // Every shard of the steps that changed after `since`.
  void fill(v1::AttemptReading& reading, std::uint64_t since) const;

 private:
  struct Known {
    engine::FoundCheckpoint checkpoint;
    std::uint64_t mark = 0;
  };
  explicit CheckpointWatch(SaveDir save_dir) : save_dir_(std::move(save_dir)) {}
  const SaveDir save_dir_;
  std::map<std::int64_t, Known> known_;
  std::string unknown_;  // told
  std::optional<BootTime> unknown_since_ = {};
};

}  // namespace muster::agent
