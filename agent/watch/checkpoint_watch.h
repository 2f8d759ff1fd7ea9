// One run's save directory: which checkpoints are there, what of them is new. look() reads the disk and may take long on a network file system; accept() and
// fill() are pure and cheap: Watch calls look() on its thread without its lock, the others under it. What is whole is the layout's word alone
// (common/engine/layout.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/engine/layout.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

class CheckpointWatch {
 public:
  static constexpr std::size_t kNewest = 2;      // steps looked at
  static constexpr std::size_t kDirsMost = 128;  // directories watched below the save directory

  // Errors: an unknown layout. Nothing: there are no checkpoints to look for.
  static Result<std::unique_ptr<CheckpointWatch>> make(const v1::Watching& watching);

  [[nodiscard]] std::vector<engine::FoundCheckpoint> look() const;
  // Directories where a change may mean a new finished shard: the save directory and those of the newest steps.
  [[nodiscard]] std::set<std::string> dirs(const std::vector<engine::FoundCheckpoint>& found) const;
  [[nodiscard]] const std::string& save_dir() const { return save_dir_; }

  // True: a shard more is finished, or a checkpoint sealed. Steps that changed get `mark`.
  bool accept(std::vector<engine::FoundCheckpoint> found, std::uint64_t mark);
  // Every shard of the steps that changed after `since`.
  void fill(v1::AttemptReading& reading, std::uint64_t since) const;

 private:
  struct Known {
    engine::FoundCheckpoint checkpoint;
    std::uint64_t mark = 0;
  };
  CheckpointWatch(std::unique_ptr<engine::CheckpointLayout> layout, std::string save_dir) : layout_(std::move(layout)), save_dir_(std::move(save_dir)) {}
  const std::unique_ptr<engine::CheckpointLayout> layout_;
  const std::string save_dir_;
  std::map<std::int64_t, Known> known_;
};

}  // namespace muster::agent
