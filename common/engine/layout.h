// Checkpoint layouts, pure but for the file view it is handed: a save directory -> which checkpoints are there and which are whole.
// Rows: "megatron" (Megatron-LM checkpointing.py; --ckpt-format torch: iter_%07d/mp_rank_*/{distrib_optim.pt,model_optim_rng.pt}, sealed by the
// tracker latest_checkpointed_iteration.txt; --ckpt-format torch_dist: iter_%07d/{common.pt,__R_I.distcp,.metadata,metadata.json}, sealed by
// its metadata), "none".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace muster::engine {

// What a layout may see of a directory. agent/watch has the real one; tests their own.
class FileView {
 public:
  virtual ~FileView() = default;
  struct Entry {
    std::string name;
    bool directory = false;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] virtual std::vector<Entry> list(const std::string& dir) const = 0;  // empty when not there
  [[nodiscard]] virtual std::string head(const std::string& file, std::size_t most) const = 0;
  [[nodiscard]] virtual std::string tail(const std::string& file, std::size_t most) const = 0;
};

struct FoundShard {
  std::string name;
  std::uint64_t bytes = 0;
  bool finished = false;  // by the engine's own marks, and readable to its end in its own format
};
struct FoundCheckpoint {
  std::int64_t step = 0;
  std::string path;
  std::vector<FoundShard> shards;
  std::uint32_t expected = 0;  // shards it needs; 0 = cannot be told yet
  bool sealed = false;         // the whole checkpoint's own mark is there
};

struct LinkPlan {
  std::vector<std::pair<std::string, std::string>> links;  // name in the resume directory -> target
  std::vector<std::pair<std::string, std::string>> files;  // name -> content (trackers: muster's word, never the engine's)
};

class CheckpointLayout {
 public:
  virtual ~CheckpointLayout() = default;
  // Newest first; looks into at most `newest` of them.
  [[nodiscard]] virtual std::vector<FoundCheckpoint> scan(const FileView& files, const std::string& save_dir, std::size_t newest) const = 0;
  // A directory that the engine loads exactly this step from.
  [[nodiscard]] virtual LinkPlan links(const std::string& save_dir, std::int64_t step) const = 0;
};
// Errors: an unknown row. "none" finds nothing.
Result<std::unique_ptr<CheckpointLayout>> make_layout(std::string_view name);

}  // namespace muster::engine
