// The directory tree of DeepSpeed (deepspeed/runtime/engine.py: save_checkpoint(),
// _get_ckpt_name(), _get_rank_zero_ckpt_name(); deepspeed/runtime/pipe/module.py), v0.6 to v0.19:
//
//   latest                                                     "global_step100"
//   zero_to_fp32.py
//   global_step100/mp_rank_00_model_states.pt                  one for each model-parallel rank
//                  zero_pp_rank_0_mp_rank_00_model_states.pt   ZeRO 3: one for each rank
//                  [bf16_]zero_pp_rank_0_mp_rank_00_optim_states.pt
//                                                              ZeRO 1 to 3: one for each rank
//                  layer_02-model_00-model_states.pt, ...      pipelines, experts
//                  expp_rank_0_mp_rank_00_optim_states.pt      experts
//
// Each rank writes its part of the optimizer last. muster assumes that rank 0 writes `latest`
// without waiting for the files of the other ranks. So `latest` does not show that these are done:
// all of their files must be there.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/engine/deepspeed/deepspeed.h"
#include "common/engine/files/line_fields.h"
#include "common/engine/files/zip_end.h"
#include "common/engine/model/layout_rows.h"

namespace muster::engine {
namespace {

constexpr std::string_view kTag = "global_step";
constexpr std::size_t kWidth = 1;  // no zeros before the number
constexpr const char* kLatest = "latest";

std::string tag_name(std::int64_t step) { return step_directory(kTag, kWidth, step); }

using DataAndModelRank = std::pair<std::int64_t, std::int64_t>;

// The ranks in the name of a file that ZeRO writes for one rank.
std::optional<DataAndModelRank> zero_ranks(std::string_view name) {
  take(name, "bf16_");
  if (!take(name, "zero_pp_rank_")) return std::nullopt;
  const auto data_rank = take_number(name);
  if (!data_rank || !take(name, "_mp_rank_")) return std::nullopt;
  const auto model_rank = take_number(name);
  if (!model_rank) return std::nullopt;
  return DataAndModelRank(*data_rank, *model_rank);
}

// The rank in "mp_rank_00_model_states.pt".
std::optional<std::int64_t> model_rank_of(std::string_view name) {
  return take(name, "mp_rank_") ? take_number(name) : std::nullopt;
}

class DeepSpeedLayout final : public CheckpointLayout {
 public:
  explicit DeepSpeedLayout(const LayoutOptions& options) : options_(options) {}

  [[nodiscard]] std::vector<FoundCheckpoint> scan(const FileView& files,
                                                  const std::string& save_dir,
                                                  std::size_t newest) const override {
    std::vector<std::int64_t> steps;
    for (const FileView::Entry& entry : files.list(save_dir))
      if (const auto step = step_of_directory(entry, kTag, kWidth)) steps.push_back(*step);
    std::ranges::sort(steps, std::greater{});
    const std::optional<std::int64_t> reached = latest_step(files, save_dir, steps);

    std::vector<FoundCheckpoint> found;
    // files of a whole checkpoint; the other checkpoints of this attempt need as many
    std::size_t of_whole = options_.shards;
    for (std::size_t i = 0; i < steps.size() && i < newest + 1; ++i) {
      FoundCheckpoint checkpoint{
          .step = steps[i],
          .path = fmt::format("{}/{}", save_dir, tag_name(steps[i])),
          .sealed = steps[i] == options_.sealed_step || (reached && *reached >= steps[i])};
      read_files(files, checkpoint);
      if (checkpoint.sealed && std::ranges::all_of(checkpoint.shards, &FoundShard::finished) &&
          checkpoint.shards.size() >= files_with_zero(checkpoint))
        of_whole = std::max(of_whole, checkpoint.shards.size());
      // one more than requested is read, only for `expected`
      if (i < newest) found.push_back(std::move(checkpoint));
    }
    for (FoundCheckpoint& checkpoint : found) {
      const std::size_t needed = std::max(of_whole, files_with_zero(checkpoint));
      checkpoint.expected = static_cast<std::uint32_t>(
          checkpoint.sealed ? std::max(needed, checkpoint.shards.size()) : needed);
    }
    return found;
  }

  [[nodiscard]] LinkPlan links(const std::string& save_dir, std::int64_t step) const override {
    const std::string name = tag_name(step);
    return {.links = {{name, fmt::format("{}/{}", save_dir, name)}}, .files = {{kLatest, name}}};
  }

  [[nodiscard]] bool is_own(std::string_view name) const override {
    return name == kLatest || name == "zero_to_fp32.py";
  }

  [[nodiscard]] bool is_mark(std::string_view name) const override { return name == kLatest; }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> marks(
      std::int64_t step) const override {
    return {{kLatest, tag_name(step)}};
  }

 private:
  // The file is written in place. So it may be empty, or name a directory that is not there.
  static std::optional<std::int64_t> latest_step(const FileView& files, const std::string& dir,
                                                 const std::vector<std::int64_t>& steps) {
    const std::string text = files.head(fmt::format("{}/{}", dir, kLatest), 64);
    std::string_view tag = trimmed(text);
    if (!take(tag, kTag)) return std::nullopt;
    const auto step = whole_number(tag);
    if (!step || !std::ranges::binary_search(steps, *step, std::greater{})) return std::nullopt;
    return step;
  }

  static void read_files(const FileView& files, FoundCheckpoint& checkpoint) {
    for (const FileView::Entry& entry : files.list(checkpoint.path)) {
      // early releases write no '_' before "optim_states"
      if (entry.directory ||
          (!entry.name.ends_with("model_states.pt") && !entry.name.ends_with("optim_states.pt")))
        continue;
      const std::string path = fmt::format("{}/{}", checkpoint.path, entry.name);
      checkpoint.shards.push_back(
          {.name = entry.name,
           .bytes = entry.bytes,
           .finished = zip_is_whole(files.tail(path, kZipTailBytes), entry.bytes)});
    }
    std::ranges::sort(checkpoint.shards, {}, &FoundShard::name);
  }

  // How many files a checkpoint of ZeRO has: those that are there, and those that are missing for
  // certain. So a file of a layer or of an expert never counts for a part of the optimizer. 0: not
  // known.
  [[nodiscard]] std::size_t files_with_zero(const FoundCheckpoint& checkpoint) const {
    std::set<DataAndModelRank> optimizer, split_model;
    std::set<std::int64_t> model_ranks, model;
    for (const FoundShard& shard : checkpoint.shards) {
      if (const auto ranks = zero_ranks(shard.name)) {
        model_ranks.insert(ranks->second);
        (shard.name.ends_with("model_states.pt") ? split_model : optimizer).insert(*ranks);
      } else if (const auto model_rank = model_rank_of(shard.name)) {
        model.insert(*model_rank);
      }
    }
    const std::size_t world = options_.world_size;
    if (model_ranks.empty() || world == 0) return 0;
    const auto missing = [](std::size_t needed, std::size_t there) {
      return needed - std::min(needed, there);
    };
    // ZeRO 3 splits the model, too. Otherwise each model-parallel rank has a file of its own.
    const std::size_t model_missing =
        split_model.empty()
            ? static_cast<std::size_t>(std::ranges::count_if(
                  model_ranks, [&](std::int64_t rank) { return !model.contains(rank); }))
            : missing(world, split_model.size());
    return checkpoint.shards.size() + missing(world, optimizer.size()) + model_missing;
  }

  const LayoutOptions options_;
};

}  // namespace

std::unique_ptr<CheckpointLayout> deepspeed_layout(const LayoutOptions& options) {
  return std::make_unique<DeepSpeedLayout>(options);
}

}  // namespace muster::engine
