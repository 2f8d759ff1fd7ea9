// The directory trees of Megatron-LM (megatron/training/checkpointing.py, core_r0.6 to main), of
// MindSpeed-LLM, and of MindSpeed-MM with both back ends
// (mindspeed_mm/fsdp/checkpoint/dcp_checkpointer.py).
#include <fmt/format.h>

#include <algorithm>

#include "common/engine/files/zip_end.h"
#include "common/engine/megatron/megatron.h"
#include "common/engine/model/layout_rows.h"

namespace muster::engine {
namespace {

constexpr std::string_view kIteration = "iter_";
constexpr std::size_t kWidth = 7;
constexpr std::size_t kExtraStatesMost = 256;  // files that are read of one checkpoint
// The shard name of the formats that save the files of all ranks in one directory. The first files
// do not show which of these formats it is, and a shard's name never changes. So there is one name
// for all.
constexpr const char* kDistributed = "distcp";

std::string iteration_name(std::int64_t step) { return step_directory(kIteration, kWidth, step); }

class MegatronLayout final : public CheckpointLayout {
 public:
  explicit MegatronLayout(const LayoutOptions& options) : options_(options) {}

  [[nodiscard]] std::vector<FoundCheckpoint> scan(const FileView& files,
                                                  const std::string& save_dir,
                                                  std::size_t newest) const override {
    std::vector<std::int64_t> steps;
    for (const FileView::Entry& entry : files.list(save_dir))
      if (const auto step = step_of_directory(entry, kIteration, kWidth)) steps.push_back(*step);
    std::ranges::sort(steps, std::greater{});
    const std::optional<std::int64_t> reached = tracker_step(files, save_dir, steps);

    std::vector<FoundCheckpoint> found;
    // shards of a whole checkpoint; the other checkpoints of this attempt need as many
    std::size_t of_whole = options_.shards;
    for (std::size_t i = 0; i < steps.size() && i < newest + 1; ++i) {
      const std::optional<std::int64_t> mark =
          steps[i] == options_.sealed_step ? steps[i] : reached;
      FoundCheckpoint checkpoint = read_checkpoint(
          files, fmt::format("{}/{}", save_dir, iteration_name(steps[i])), steps[i], mark);
      if (checkpoint.sealed && std::ranges::all_of(checkpoint.shards, &FoundShard::finished))
        of_whole = std::max(of_whole, checkpoint.shards.size());
      // one more than requested is read, only for `expected`
      if (i < newest) found.push_back(std::move(checkpoint));
    }
    for (FoundCheckpoint& checkpoint : found) {
      // In the other formats one file describes the whole checkpoint, so there is one shard,
      // regardless of the parallel product.
      const bool one =
          checkpoint.shards.size() == 1 && !checkpoint.shards[0].name.starts_with("mp_rank_");
      const std::size_t needed = one ? 1 : of_whole;
      checkpoint.expected = static_cast<std::uint32_t>(
          checkpoint.sealed ? std::max(needed, checkpoint.shards.size()) : needed);
    }
    return found;
  }

  [[nodiscard]] LinkPlan links(const std::string& save_dir, std::int64_t step) const override {
    const std::string name = iteration_name(step);
    return {.links = {{name, fmt::format("{}/{}", save_dir, name)}},
            .files = {{kTracker, std::to_string(step)}}};
  }

  [[nodiscard]] bool is_own(std::string_view name) const override {
    return name == kTracker || name == "release";
  }

 private:
  static bool whole_zip(const FileView& files, const std::string& dir,
                        const FileView::Entry* file) {
    return file != nullptr &&
           zip_is_whole(files.tail(fmt::format("{}/{}", dir, file->name), kZipTailBytes),
                        file->bytes);
  }

  static FoundCheckpoint read_checkpoint(const FileView& files, std::string path, std::int64_t step,
                                         std::optional<std::int64_t> reached) {
    const Entries entries = files.list(path);
    const bool per_rank = std::ranges::any_of(entries, [](const FileView::Entry& entry) {
      return entry.directory && entry.name.starts_with("mp_rank_");
    });
    // Only torch_dist writes common.pt (as its first file) and metadata.json (as its last).
    const bool dist = find_file(entries, "common.pt") != nullptr ||
                      find_file(entries, "metadata.json") != nullptr;
    FoundCheckpoint result{.step = step, .path = std::move(path)};
    if (per_rank)
      read_per_rank(files, entries, result, reached);
    else if (dist)
      read_torch_dist(files, entries, result);
    else
      read_torch_dcp(files, entries, result, reached);
    return result;
  }

  // --ckpt-format torch: one directory for each tensor- and pipeline-parallel rank. The tracker is
  // written after a barrier that follows every file.
  static void read_per_rank(const FileView& files, const Entries& entries, FoundCheckpoint& result,
                            std::optional<std::int64_t> reached) {
    result.sealed = reached && *reached >= result.step;
    struct Shard {
      std::string dir;
      std::optional<FileView::Entry> model, optimizer;
    };
    std::vector<std::pair<std::string, Shard>> shards;
    for (const FileView::Entry& entry : entries) {
      if (!entry.directory || !entry.name.starts_with("mp_rank_")) continue;
      Shard shard{.dir = fmt::format("{}/{}", result.path, entry.name)};
      const Entries inside = files.list(shard.dir);
      if (const auto* file = find_file(inside, "model_optim_rng.pt")) shard.model = *file;
      if (const auto* file = find_file(inside, "distrib_optim.pt")) shard.optimizer = *file;
      shards.emplace_back(entry.name, std::move(shard));
    }
    std::ranges::sort(shards, {}, [](const auto& shard) { return shard.first; });
    // --use-distributed-optimizer writes the second file for every shard or for none.
    const bool two_files = std::ranges::any_of(
        shards, [](const auto& shard) { return shard.second.optimizer.has_value(); });
    for (const auto& [name, shard] : shards) {
      FoundShard found{.name = name};
      found.bytes =
          (shard.model ? shard.model->bytes : 0) + (shard.optimizer ? shard.optimizer->bytes : 0);
      found.finished = whole_zip(files, shard.dir, shard.model ? &*shard.model : nullptr) &&
                       (!two_files ||
                        whole_zip(files, shard.dir, shard.optimizer ? &*shard.optimizer : nullptr));
      result.shards.push_back(std::move(found));
    }
  }

  // --ckpt-format torch_dist: the files of all ranks are in one directory. After them .metadata is
  // renamed to its final name, and metadata.json is written last.
  static void read_torch_dist(const FileView& files, const Entries& entries,
                              FoundCheckpoint& result) {
    const FileView::Entry* common = find_file(entries, "common.pt");
    const FileView::Entry* metadata = find_file(entries, ".metadata");
    const FileView::Entry* description = find_file(entries, "metadata.json");
    FoundShard shard{.name = kDistributed};
    for (const FileView::Entry& entry : entries)
      if (!entry.directory) shard.bytes += entry.bytes;
    result.sealed =
        metadata != nullptr && metadata->bytes > 0 && description != nullptr &&
        json_with_key(files.head(result.path + "/metadata.json", 4096), "sharded_backend");
    shard.finished = result.sealed && (common == nullptr || whole_zip(files, result.path, common));
    result.shards.push_back(std::move(shard));
  }

  // --ckpt-format torch_dcp, and MindSpeed-MM's FSDP2: only torch.distributed.checkpoint.
  //
  // .metadata is renamed to its final name when all ranks have written, and the tracker follows. An
  // asynchronous save of FSDP2 writes its tracker at once, before the shards. A kill before the
  // tracker leaves an older step in the tracker. So both marks are checked.
  static void read_torch_dcp(const FileView& files, const Entries& entries, FoundCheckpoint& result,
                             std::optional<std::int64_t> reached) {
    const FileView::Entry* metadata = find_file(entries, ".metadata");
    FoundShard shard{.name = kDistributed};
    bool any = metadata != nullptr, empty = false;
    for (const FileView::Entry& entry : entries) {
      if (entry.directory) continue;
      const bool data = entry.name.ends_with(".distcp");
      any = any || data;
      empty = empty || (data && entry.bytes == 0);
      shard.bytes += entry.bytes;
    }
    if (!any) return;
    result.sealed =
        metadata != nullptr && metadata->bytes > 0 && reached && *reached >= result.step;
    shard.finished =
        result.sealed && !empty && extra_states_whole(files, entries, result.path, shard.bytes);
    result.shards.push_back(std::move(shard));
  }

  // FSDP2: every rank writes extra_state/extra_state_rank_N.pt (iteration, samples, scheduler,
  // random numbers) before the other files.
  static bool extra_states_whole(const FileView& files, const Entries& entries,
                                 const std::string& path, std::uint64_t& bytes) {
    if (std::ranges::none_of(entries, [](const FileView::Entry& entry) {
          return entry.directory && entry.name == "extra_state";
        }))
      return true;
    const std::string dir = path + "/extra_state";
    bool whole = true;
    std::size_t checked = 0;
    for (const FileView::Entry& entry : files.list(dir)) {
      if (entry.directory || !entry.name.starts_with("extra_state_rank_")) continue;
      bytes += entry.bytes;
      if (checked++ < kExtraStatesMost) whole = whole && whole_zip(files, dir, &entry);
    }
    return whole && checked > 0;
  }

  const LayoutOptions options_;
};

}  // namespace

std::unique_ptr<CheckpointLayout> megatron_layout(const LayoutOptions& options) {
  return std::make_unique<MegatronLayout>(options);
}

}  // namespace muster::engine
