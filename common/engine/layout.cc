#include "common/engine/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "common/engine/step_line.h"
#include "common/engine/zip_end.h"

namespace muster::engine {
namespace {

constexpr const char* kTracker = "latest_checkpointed_iteration.txt";
constexpr std::string_view kIteration = "iter_";

using Entries = std::vector<FileView::Entry>;

std::string iteration_name(std::int64_t step) { return fmt::format("iter_{:07d}", step); }

std::optional<std::int64_t> iteration_of(const FileView::Entry& entry) {
  if (!entry.directory || !entry.name.starts_with(kIteration)) return std::nullopt;
  const auto step = whole_number(std::string_view(entry.name).substr(kIteration.size()));
  if (!step || entry.name != iteration_name(*step)) return std::nullopt;  // not a name that Megatron writes
  return step;
}

const FileView::Entry* find(const Entries& entries, std::string_view name) {
  const auto found = std::ranges::find_if(entries, [&](const FileView::Entry& entry) { return !entry.directory && entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

class MegatronLayout final : public CheckpointLayout {
 public:
  [[nodiscard]] std::vector<FoundCheckpoint> scan(const FileView& files, const std::string& save_dir, std::size_t newest) const override {
    std::vector<std::int64_t> steps;
    for (const FileView::Entry& entry : files.list(save_dir))
      if (const auto step = iteration_of(entry)) steps.push_back(*step);
    std::ranges::sort(steps, std::greater{});
    const std::optional<std::int64_t> reached = tracker(files, save_dir, steps);

    std::vector<FoundCheckpoint> found;
    std::size_t of_whole = 0;  // shards of a whole one: what the others of this attempt need as well
    for (std::size_t i = 0; i < steps.size() && i < newest + 1; ++i) {
      FoundCheckpoint checkpoint = look(files, fmt::format("{}/{}", save_dir, iteration_name(steps[i])), steps[i], reached);
      if (checkpoint.sealed && std::ranges::all_of(checkpoint.shards, &FoundShard::finished)) of_whole = std::max(of_whole, checkpoint.shards.size());
      if (i < newest) found.push_back(std::move(checkpoint));  // one more than asked for is looked at, for `expected` alone
    }
    for (FoundCheckpoint& checkpoint : found)
      checkpoint.expected = static_cast<std::uint32_t>(checkpoint.sealed ? std::max(of_whole, checkpoint.shards.size()) : of_whole);
    return found;
  }

  [[nodiscard]] LinkPlan links(const std::string& save_dir, std::int64_t step) const override {
    const std::string name = iteration_name(step);
    return {.links = {{name, fmt::format("{}/{}", save_dir, name)}}, .files = {{kTracker, std::to_string(step)}}};
  }

 private:
  // The iteration that the tracker has reached. It is written in place: empty or garbled, it says nothing. One that names an iteration which is
  // not there was not written by this attempt's saves (a copied directory) and says nothing either.
  static std::optional<std::int64_t> tracker(const FileView& files, const std::string& save_dir, const std::vector<std::int64_t>& steps) {
    const std::string text = files.head(fmt::format("{}/{}", save_dir, kTracker), 64);
    const auto step = whole_number(trimmed(text));
    if (!step || !std::ranges::binary_search(steps, *step, std::greater{})) return std::nullopt;
    return step;
  }

  static bool whole_zip(const FileView& files, const std::string& dir, const FileView::Entry* file) {
    return file != nullptr && zip_is_whole(files.tail(fmt::format("{}/{}", dir, file->name), kZipTailBytes), file->bytes);
  }

  static FoundCheckpoint look(const FileView& files, std::string path, std::int64_t step, std::optional<std::int64_t> reached) {
    const Entries entries = files.list(path);
    const bool per_rank = std::ranges::any_of(entries, [](const FileView::Entry& entry) { return entry.directory && entry.name.starts_with("mp_rank_"); });
    FoundCheckpoint result{.step = step, .path = std::move(path)};
    if (per_rank)
      look_per_rank(files, entries, result, reached);
    else
      look_distributed(files, entries, result);
    return result;
  }

  // --ckpt-format torch: a directory for each tensor- and pipeline-parallel rank. The tracker is written after a barrier that follows every file.
  static void look_per_rank(const FileView& files, const Entries& entries, FoundCheckpoint& result, std::optional<std::int64_t> reached) {
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
      if (const auto* file = find(inside, "model_optim_rng.pt")) shard.model = *file;
      if (const auto* file = find(inside, "distrib_optim.pt")) shard.optimizer = *file;
      shards.emplace_back(entry.name, std::move(shard));
    }
    std::ranges::sort(shards, {}, [](const auto& shard) { return shard.first; });
    // --use-distributed-optimizer writes the second file for every shard or for none.
    const bool two_files = std::ranges::any_of(shards, [](const auto& shard) { return shard.second.optimizer.has_value(); });
    for (const auto& [name, shard] : shards) {
      FoundShard found{.name = name};
      found.bytes = (shard.model ? shard.model->bytes : 0) + (shard.optimizer ? shard.optimizer->bytes : 0);
      found.finished = whole_zip(files, shard.dir, shard.model ? &*shard.model : nullptr) &&
                       (!two_files || whole_zip(files, shard.dir, shard.optimizer ? &*shard.optimizer : nullptr));
      result.shards.push_back(std::move(found));
    }
  }

  // --ckpt-format torch_dist: files of all ranks in one directory; .metadata is renamed into place after them, metadata.json written last.
  static void look_distributed(const FileView& files, const Entries& entries, FoundCheckpoint& result) {
    const FileView::Entry* common = find(entries, "common.pt");
    const FileView::Entry* metadata = find(entries, ".metadata");
    const FileView::Entry* description = find(entries, "metadata.json");
    FoundShard shard{.name = "torch_dist"};
    bool any = common != nullptr || metadata != nullptr || description != nullptr;
    for (const FileView::Entry& entry : entries) {
      any = any || entry.name.ends_with(".distcp");
      if (!entry.directory) shard.bytes += entry.bytes;
    }
    if (!any) return;
    result.sealed = metadata != nullptr && metadata->bytes > 0 && description != nullptr && describes(files.head(result.path + "/metadata.json", 4096));
    shard.finished = result.sealed && (common == nullptr || whole_zip(files, result.path, common));
    result.shards.push_back(std::move(shard));
  }

  // A JSON object to its end that names its backend; it is a few hundred bytes, written in place.
  static bool describes(std::string_view text) {
    text = trimmed(text);
    return text.size() > 2 && text.front() == '{' && text.back() == '}' && std::ranges::count(text, '"') % 2 == 0 &&
           text.find("\"sharded_backend\"") != std::string_view::npos;
  }
};

class NoLayout final : public CheckpointLayout {
 public:
  [[nodiscard]] std::vector<FoundCheckpoint> scan(const FileView&, const std::string&, std::size_t) const override { return {}; }
  [[nodiscard]] LinkPlan links(const std::string&, std::int64_t) const override { return {}; }
};

}  // namespace

Result<std::unique_ptr<CheckpointLayout>> make_layout(std::string_view name) {
  if (name == "megatron") return std::unique_ptr<CheckpointLayout>(std::make_unique<MegatronLayout>());
  if (name == "none" || name.empty()) return std::unique_ptr<CheckpointLayout>(std::make_unique<NoLayout>());
  return fail(ErrorCode::Unsupported, fmt::format("looking for checkpoints: layout '{}' is not known (megatron | none)", name));
}

}  // namespace muster::engine
