// Checkpoint layouts: a layout finds the checkpoints in a save directory and judges which of them
// are whole. The caller of make_layout() owns the layout. Pure, except that a layout reads files
// through the caller's FileView.
//
// Each layout has one row; docs/engines/checkpoints.md lists the releases of each:
//   megatron      Megatron-LM and MindSpeed-LLM (checkpointing.py): iter_%07d, --ckpt-format torch,
//                 torch_dist and torch_dcp
//   mindspeed-mm  the same, and the FSDP2 back end's directories
//   mindformers   MindFormers (CheckpointMonitor):
//                 checkpoint/rank_N/PREFIX_rank_N-EPOCH_STEP.ckpt|safetensors, and master's
//                 iteration_%08d
//   deepspeed     DeepSpeed (runtime/engine.py): latest, global_stepN
//   none          finds nothing
//
// A checkpoint is whole if the engine's own marks show that it is finished, and if it is readable
// to its end in its own format. A tracker is only a mark, and it may be wrong. It may be ahead of
// its shards or behind them, it may be torn, or it may belong to another run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace muster::engine {

// What a layout may see of a directory. agent/logs has the real view (DiskView); tests have their
// own.
class FileView {
 public:
  virtual ~FileView() = default;
  struct Entry {
    std::string name;
    bool directory = false;
    std::uint64_t bytes = 0;
    std::uint32_t mode = 0;  // permission bits; 0 = the view does not know them
  };
  // empty if the directory does not exist
  [[nodiscard]] virtual std::vector<Entry> list(const std::string& dir) const = 0;
  [[nodiscard]] virtual std::string head(const std::string& file, std::size_t most) const = 0;
  [[nodiscard]] virtual std::string tail(const std::string& file, std::size_t most) const = 0;
  // `most` bytes from `from` on, fewer at the end of the file. Empty: the view does not support
  // this. Then a safetensors file is known to be complete only if head() returns its whole header,
  // and MindFormers' own count of steps is read only from .ckpt files.
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
  std::uint32_t expected = 0;  // shards that it needs; 0 = not known yet
  // The whole checkpoint's own mark exists. For an engine without such a mark: one shard is
  // finished, and `expected` decides.
  bool sealed = false;
};

struct LinkPlan {
  std::vector<std::pair<std::string, std::string>> links;  // name in the resume directory -> target
  // name -> content (trackers: muster writes them, never the engine)
  std::vector<std::pair<std::string, std::string>> files;
};

// What is known about the job beyond its files; 0 = not known.
struct LayoutOptions {
  std::uint32_t world_size = 0;  // ranks of the job
  // megatron, format torch: TP x PP (x EP) directories a checkpoint; deepspeed: files a checkpoint
  std::uint32_t shards = 0;
  std::uint32_t first_rank = 0;  // mindformers: whose directories this node reports;
  std::uint32_t rank_count = 0;  //   0 = all that exist
  // mindformers: steps of one epoch as file names count them: of the data set, or sink_size in sink
  // mode
  std::int64_t steps_per_epoch = 0;
  // megatron, deepspeed: this step is known to be sealed, regardless of the tracker's present
  // content
  std::int64_t sealed_step = -1;
};

class CheckpointLayout {
 public:
  virtual ~CheckpointLayout() = default;
  // Newest first; reads at most `newest` of them.
  [[nodiscard]] virtual std::vector<FoundCheckpoint> scan(const FileView& files,
                                                          const std::string& save_dir,
                                                          std::size_t newest) const = 0;
  // A directory from which the engine loads exactly this step. Empty for layouts whose file names
  // do not follow from the step alone: use resume_links there.
  [[nodiscard]] virtual LinkPlan links(const std::string& save_dir, std::int64_t step) const = 0;
  // Works for every layout. A layout that has to read the files returns nothing if the step does
  // not exist.
  [[nodiscard]] virtual LinkPlan resume_links(const FileView& files, const std::string& save_dir,
                                              std::int64_t step) const;
  // Whether the engine itself writes an entry of this name into a save directory, in addition to
  // whole checkpoints. Such an entry is never another program's, regardless of its content.
  [[nodiscard]] virtual bool is_own(std::string_view name) const;
  // Whether the engine writes a file of this name when a checkpoint is whole, to say so.
  [[nodiscard]] virtual bool is_mark(std::string_view name) const;
  // Name in the save directory -> what the engine writes there when this step is whole.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> marks(
      std::int64_t step) const;
};
// Whether both rows find the same files: what one has saved, the other can start from.
bool same_files(std::string_view one, std::string_view other);

// Whether each rank has a directory of its own in a checkpoint.
bool has_rank_dirs(std::string_view name);

// Errors: an unknown row. "none" finds nothing.
Result<std::unique_ptr<CheckpointLayout>> make_layout(std::string_view name,
                                                      const LayoutOptions& options = {});

// Finds a program's own checkpoints: `scan` found none, but some files look like checkpoints.
// Returns the largest of these files as a path below `save_dir`. Empty: there is none.
std::string unknown_file(const CheckpointLayout& layout, const FileView& files,
                         const std::string& save_dir, const std::vector<FoundCheckpoint>& found);

// Whether training may resume from the file or directory at `path`, as far as its name shows.
// Empty: it may. Otherwise the reason: "weights alone, ...".
std::string resume_problem(std::string_view path);

}  // namespace muster::engine
