// Checkpoint layouts, pure but for the file view it is handed: a save directory -> which
// checkpoints are there and which are whole. Rows, each with its releases in
// docs/engines/checkpoints.md:
//   megatron      Megatron-LM and MindSpeed-LLM (checkpointing.py): iter_%07d, --ckpt-format torch,
//                 torch_dist and torch_dcp
//   mindspeed-mm  the same, and the FSDP2 back end's directories
//   mindformers   MindFormers (CheckpointMonitor):
//                 checkpoint/rank_N/PREFIX_rank_N-EPOCH_STEP.ckpt|safetensors, and master's
//                 iteration_%08d
//   none          finds nothing
// Whole means: finished by the engine's own marks, and readable to its end in its own format. A
// tracker is a mark, never the truth: it may be ahead of its shards, behind them, torn, or another
// run's.
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
    std::uint32_t mode = 0;  // permission bits; 0 = the view cannot tell
  };
  // empty when not there
  [[nodiscard]] virtual std::vector<Entry> list(const std::string& dir) const = 0;
  [[nodiscard]] virtual std::string head(const std::string& file, std::size_t most) const = 0;
  [[nodiscard]] virtual std::string tail(const std::string& file, std::size_t most) const = 0;
  // `most` bytes from `from` on, fewer at the end of the file; empty: the view cannot do this.
  // Without it a safetensors file is known to its end only when its header is in what head() gives,
  // and MindFormers' own count of steps is read from .ckpt files alone.
  [[nodiscard]] virtual std::string part(const std::string& file, std::uint64_t from,
                                         std::size_t most) const;
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
  // the whole checkpoint's own mark is there; where an engine has none: a shard is finished, and
  // `expected` decides
  bool sealed = false;
};

struct LinkPlan {
  std::vector<std::pair<std::string, std::string>> links;  // name in the resume directory -> target
  // name -> content (trackers: muster's word, never the engine's)
  std::vector<std::pair<std::string, std::string>> files;
};

// What is known of the job beyond its files; 0 = not known.
struct LayoutOptions {
  std::uint32_t world_size = 0;  // ranks of the job
  // megatron, format torch: TP x PP (x EP) directories a checkpoint
  std::uint32_t shards = 0;
  std::uint32_t first_rank = 0;  // mindformers: whose directories this node tells of;
  std::uint32_t rank_count = 0;  //   0 = all that are there
  // mindformers: of what its file names count: the data set's, or in sink mode sink_size
  std::int64_t steps_per_epoch = 0;
  // megatron: known to be sealed, whatever the tracker has become since
  std::int64_t sealed_step = -1;
};

class CheckpointLayout {
 public:
  virtual ~CheckpointLayout() = default;
  // Newest first; looks into at most `newest` of them.
  [[nodiscard]] virtual std::vector<FoundCheckpoint> scan(const FileView& files,
                                                          const std::string& save_dir,
                                                          std::size_t newest) const = 0;
  // A directory that the engine loads exactly this step from. Where names of files are not known
  // from the step alone, nothing: use resume_links.
  [[nodiscard]] virtual LinkPlan links(const std::string& save_dir, std::int64_t step) const = 0;
  // The same for every layout: looks at the files. Nothing: the step is not there.
  [[nodiscard]] virtual LinkPlan resume_links(const FileView& files, const std::string& save_dir,
                                              std::int64_t step) const;
  // What the engine itself writes into a save directory beside whole checkpoints: no stranger's,
  // whatever is in it.
  [[nodiscard]] virtual bool is_own(std::string_view name) const;
};
// Errors: an unknown row. "none" finds nothing.
Result<std::unique_ptr<CheckpointLayout>> make_layout(std::string_view name,
                                                      const LayoutOptions& options = {});

// A program's own checkpoints: nothing that `scan` found is one, and files are there that look as
// if they were meant to be. The largest of them, below `save_dir`; empty: there is none.
std::string unknown_file(const CheckpointLayout& layout, const FileView& files,
                         const std::string& save_dir, const std::vector<FoundCheckpoint>& found);

// Empty: training may resume from what lies at `path`, as far as its name tells. Otherwise why not:
// "weights alone, ...".
std::string resume_problem(std::string_view path);

}  // namespace muster::engine
